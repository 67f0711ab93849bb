// Package render shows what controllers would do to their parents, for "hookloop render". It needs
// no cluster: the engine runs against an API server in memory (package memapi) that holds the
// objects of your files.
//
// Call [Render] with [Options]. It reads the files and starts the hook if you give a command. Then
// it lets the engine take one key at a time until one round is done or all is settled. The [Result]
// has the writes in order, the changed objects, the parents' status and the Events. Do not call
// Render concurrently.
package render
