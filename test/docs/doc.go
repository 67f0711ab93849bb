// Package docs checks the pages in docs: it runs the tutorial, command by command, on a real
// control plane, and compares each output with the page's. A page outside of the tutorial that has
// console blocks has a row in blocks.txt: how they are tested, or why not.
//
// With -update the tests write the real output into the pages. It has no code for other packages.
package docs
