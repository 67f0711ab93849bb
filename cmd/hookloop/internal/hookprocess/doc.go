// Package hookprocess runs a hook as a child process on a loopback port, for the commands that
// start one.
//
// Call [Start] with the command; it returns a [Process] when the hook listens. Use [Redirect] to
// point a controller at the process, and call Stop at the end.
//
// The hook finds its port in the environment: in HOOKLOOP_HOOK_LISTEN, which the SDKs read, and in
// PORT. If it listens elsewhere, it should print the line "listening on ADDRESS", or listen at the
// address that its controller declares.
//
// The process and its descendants share a process group. They end with Stop, and also if this
// process is killed. A process that ends is not restarted. A Process is safe for concurrent use.
package hookprocess
