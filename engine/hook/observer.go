package hook

// Observer receives reports of a transport about a hook, in addition to answers. Its methods do not
// block, and may be called at any time by several goroutines.
type Observer interface {
	// Serves reports the operations that the hook serves. Call it when they become known or change:
	// the controller's condition HooksMatch compares them with the spec.
	Serves([]Op)
	// Intercepted reports who answers for some of the controller's parents in place of its hooks. An
	// empty list means nobody.
	Intercepted(by []string)
	// Answering reports which transport answers, if the hook has a fallback. It is called when the
	// hook is opened, and when another transport answers.
	Answering(Answering)
}

// Answering describes which of a hook's transports answers.
type Answering struct {
	// Transport is the name of the transport that answers, such as grpc or webhook.
	Transport string
	// Cause tells why it answers in place of the preferred one; empty if it is the preferred one.
	Cause string
}
