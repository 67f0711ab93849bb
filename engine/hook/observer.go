package hook

// Observer receives the reports of a transport about a hook, beside its answers. Its methods do not
// block. They may be called at any time, by several goroutines.
type Observer interface {
	// Serves receives the operations that the hook serves. It is called when they become known or
	// change.
	Serves([]Op)
	// Intercepted receives the names of those that answer for some of the controller's parents in
	// place of its hooks; empty if the hooks answer for all.
	Intercepted(by []string)
	// Answering receives the transport that answers, if the hook has several. It is called when the
	// hook is opened, and when another one answers.
	Answering(Answering)
}

// Answering describes which of a hook's transports answers.
type Answering struct {
	// Transport is the field of the hook's spec that answers: grpc or webhook.
	Transport string
	// Cause is the reason why it answers in place of the preferred one; empty if it is that one.
	Cause string
}
