package hook

// Changed is the input of a question that has changed since the previous question about the same
// key. If several have, it is the first of them in the order of the constants.
type Changed string

// The inputs. Their values are labels of metrics.
const (
	// ChangedStart: the engine, the controller or its hook has just started.
	ChangedStart Changed = "start"
	// ChangedFirst: there was no question about the key yet.
	ChangedFirst Changed = "first"
	// ChangedParent: the parent, in more than its status.
	ChangedParent Changed = "parent"
	// ChangedRelated: a related object.
	ChangedRelated Changed = "related"
	// ChangedCustomize: the selection of the related objects, or whether they are known.
	ChangedCustomize Changed = "customize"
	// ChangedInput: the input of a map hook.
	ChangedInput Changed = "input"
	// ChangedChild: a child, an attachment or an output.
	ChangedChild Changed = "child"
	// ChangedStatus: the status of the parent alone, also by the hook's own answer.
	ChangedStatus Changed = "status"
	// ChangedTrigger: something outside of the cluster; the hook sent a trigger, or a user did.
	ChangedTrigger Changed = "trigger"

	// ChangedRetry: nothing; the sync before failed.
	ChangedRetry Changed = "retry"
	// ChangedRequeue: nothing; the answer before asked for another question after a time.
	ChangedRequeue Changed = "requeue"
	// ChangedResync: nothing; the resync period is over.
	ChangedResync Changed = "resync"
	// ChangedNothing: nothing, and there is no other reason.
	ChangedNothing Changed = "nothing"
)
