// Package scaffold writes the project of a new controller: "hookloop init".
//
// A project consists of templates, which are embedded in the program. A file belongs to one of
// four folders of templates: all projects, those of a kind of controller, those of a language, or
// those of both. No text exists twice. The package renders all files in memory, and then writes all
// of them or none; it never replaces a file. It reads no cluster, and runs no other program.
//
// Functions are safe for concurrent use on different folders. Unit tests cover names, options and
// the writing; test/integration makes a project of every language and kind, runs its tests, and
// sees a change on a real control plane.
package scaffold
