package pipeline

import (
	"hash/maphash"
	"math/bits"
	"slices"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
)

// lastQuestion identifies the parent of the last question about a key. The zero value is no
// question. It has hashes, because there is one for each parent.
type lastQuestion struct {
	// version is that of the parent (plan.VersionOf), generation is its generation, and metadata
	// another hash (metadataHash).
	version    uint64
	generation int64
	metadata   uint64
	// asked reports that there is a question. answered reports that it is the last sync's, which had
	// no fault.
	asked, answered bool
}

func questionAbout(parent *object.Object) lastQuestion {
	return lastQuestion{
		version: plan.VersionOf(parent.ResourceVersion()), generation: parent.Generation(),
		metadata: metadataHash(parent), asked: true,
	}
}

// hasAskedAll reports whether the causes of a sync are events that the last question contained
// already: they arrived after the view had shown them to that sync. Nothing has changed since for
// the hook, so that it need not be asked again.
func (s *parentState) hasAskedAll(item queue.Item[hook.Key]) bool {
	if !s.asked.answered || item.Attempt > 0 || item.Count == 0 || item.Count > len(item.Causes) {
		return false
	}
	return !slices.ContainsFunc(item.Causes, func(c queue.Cause) bool { return !s.hasAsked(item.Key.Parent, c) })
}

// hasAsked reports whether the last question contained the object of an event in its version.
func (s *parentState) hasAsked(parent object.Ref, c queue.Cause) bool {
	switch {
	case c.Deleted || c.ResourceVersion == "":
		return false
	case c.Kind == queue.CauseObject:
		return c.Ref == parent && plan.VersionOf(c.ResourceVersion) == s.asked.version
	case c.Kind == queue.CauseChild:
		return s.owned.Has(c.Ref, c.ResourceVersion)
	}
	return false
}

// setChanged sets the input that has changed in the questions of a sync, and remembers the first
// one, which is about the present parent.
func (r *run) setChanged(questions []*hook.Question) {
	if len(questions) == 0 {
		return
	}
	r.tally.changed = r.state.asked.changed(r.item, questions[0])
	for _, q := range questions {
		q.Changed = r.tally.changed
	}
	r.state.asked = questionAbout(questions[0].Parent)
}

// changed returns the input of a question that has changed since the last one. The item has the
// causes of the sync.
func (last lastQuestion) changed(item queue.Item[hook.Key], q *hook.Question) hook.Changed {
	now := questionAbout(q.Parent)
	sameBut := last.generation == now.generation && now.generation != 0 && last.metadata == now.metadata
	switch {
	case !last.asked && item.Caused(queue.CauseInitial):
		return hook.ChangedStart
	case !last.asked:
		return hook.ChangedFirst
	case last.version != now.version && !sameBut:
		return hook.ChangedParent
	}
	if object := changedObject(item, q); object != "" {
		return object
	}
	if last.version != now.version {
		return hook.ChangedStatus
	}
	return unchanged(item)
}

// changedObject returns the input that is an object beside the parent; empty for none.
func changedObject(item queue.Item[hook.Key], q *hook.Question) hook.Changed {
	isChild := func(c queue.Cause) bool {
		return slices.ContainsFunc(q.Children, func(g hook.Group) bool { return g.Resource.GVK == c.Ref.GVK })
	}
	var related, input, child bool
	for _, c := range item.Causes {
		related = related || c.Kind == queue.CauseRelated && c.Ref.Name != ""
		input = input || c.Kind == queue.CauseChild && item.Key.Part != "" && !isChild(c)
		child = child || c.Kind == queue.CauseChild
	}
	switch {
	case related:
		return hook.ChangedRelated
	case item.Caused(queue.CauseRelated):
		return hook.ChangedCustomize
	case input:
		return hook.ChangedInput
	case child || item.Caused(queue.CauseChild):
		return hook.ChangedChild
	}
	return ""
}

// causeOf are the causes of a question that no object has caused, the first one first.
var causeOf = []struct {
	kind    queue.CauseKind
	changed hook.Changed
}{
	{queue.CauseTrigger, hook.ChangedTrigger}, {queue.CauseParent, hook.ChangedParent},
	{queue.CauseInitial, hook.ChangedStart}, {queue.CauseRetry, hook.ChangedRetry},
	{queue.CauseRequeue, hook.ChangedRequeue}, {queue.CauseResync, hook.ChangedResync},
}

// unchanged returns the reason of a question with the same objects as before.
func unchanged(item queue.Item[hook.Key]) hook.Changed {
	for _, c := range causeOf {
		if item.Caused(c.kind) {
			return c.changed
		}
	}
	return hook.ChangedNothing
}

var metadataSeed = maphash.MakeSeed()

// metadataHash hashes the metadata of an object that others than the server set, in any order.
func metadataHash(o *object.Object) uint64 {
	var sum uint64
	for _, pairs := range []map[string]string{o.Labels(), o.Annotations()} {
		for key, value := range pairs {
			sum += bits.RotateLeft64(maphash.String(metadataSeed, key), 1) ^ maphash.String(metadataSeed, value)
		}
		sum = bits.RotateLeft64(sum, 1)
	}
	for _, f := range o.Finalizers() {
		sum += maphash.String(metadataSeed, f)
	}
	for _, ref := range o.OwnerReferences() {
		sum += bits.RotateLeft64(maphash.String(metadataSeed, string(ref.UID)), 1)
	}
	if o.Deleting() {
		sum++
	}
	return sum
}
