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
}
