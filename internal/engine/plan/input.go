package plan

// Input is what a plan is made from, beside what is desired: the observed state, and what the engine
// remembers of earlier syncs of the parent. It is used by one sync at a time.
type Input struct {
	Observed *Observed
	// Converged are the children that were found converged. Make may change it and return it in the
	// Result. It may be nil.
	Converged Converged
	// Previous is the last answer and the last plan. Children and Make change it. It may be nil.
	Previous *Previous
	// Apply is the way in which children are written.
	Apply Apply
}
