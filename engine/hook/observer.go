package hook

// Observer hears what a transport learns about a hook beside its answers. Its methods do not block
// and may be called at any time, by several goroutines.
type Observer interface {
	// Serves tells for which operations of the controller's contract the hook has a function. It is
	// called when that becomes known or changes.
	Serves([]Op)
	// Intercepted names who answers for some of the controller's parents in place of its hooks;
	// nobody if it is empty.
	Intercepted(by []string)
}
