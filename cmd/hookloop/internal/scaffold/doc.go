// Package scaffold writes the project of a new controller for "hookloop init". Fill in [Options]
// and call [Write].
//
// The projects come from templates that are embedded in the program. A template is in one of four
// kinds of folders, so that each text exists once: for all projects, for a kind of controller, for
// a language, or for both. Write renders all files in memory first, and then writes all of them or
// none. It never replaces a file, asks no cluster and runs no program. The functions are safe for
// concurrent use on different folders.
package scaffold
