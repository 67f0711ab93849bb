// Package hookprocess runs a hook as a child process on a loopback port, for the client commands.
//
// The environment of the hook has the port: HOOKLOOP_HOOK_LISTEN (the SDKs' own variable) and
// PORT. A hook that listens elsewhere is found by the line "listening on ADDRESS" that it prints,
// or at the address that its controller declares. Redirect points a controller at the process.
//
// A process and all its descendants are one process group. They end with Stop, and also if this
// process is killed. The package restarts nothing. A Process is safe for concurrent use.
package hookprocess
