package mapping

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// tags are the marks of an output as far as they can be read. A user may have edited or removed
// some of them; the others, and the last-applied annotation, have the same information.
type tags struct {
	// controller is the name of the map controller; empty if it is lost.
	controller string
	// hash is the hash of the map key; empty if it is lost.
	hash string
	// key is the map key; empty if it is lost. If it is not, its hash is hash.
	key string
}

// lost reports whether an object carries marks, but not enough of them to be in a part.
func (t tags) lost() bool { return t != (tags{}) && (t.controller == "" || t.hash == "") }

// maxMapKey bounds the map keys that are read from annotations, in bytes. Those of inputs are
// shorter. Others are in the queue, in the log and in requests, too: a user can mark an object with
// any text.
const maxMapKey = 4096

// readTags reads the marks of an object; they are zero for an object without marks. Marks that
// agree with each other and with the last-applied state count. If they do not, those of the
// last-applied state count. Without one, a label that has the form of a hash counts before the
// annotation.
func readTags(o *object.Object) tags {
	label := o.Labels()[plan.MapKey]
	annotation := o.Annotations()[plan.MapKey]
	if len(annotation) > maxMapKey {
		annotation = ""
	}
	t := tags{controller: o.Annotations()[plan.MapController]}
	agree := t.controller != "" && annotation != "" && Hash(annotation) == label
	if agree && t.isApplied(annotation, o.LastApplied()) {
		t.key = annotation
		t.hash = label
		return t
	}
	if applied := appliedTags(o.LastApplied()); applied != (tags{}) {
		return applied
	}
	switch {
	case agree:
		t.key = annotation
		t.hash = label
	case isHash(label):
		t.hash = label
	case parses(annotation):
		t.key, t.hash = annotation, Hash(annotation)
	}
	return t
}

func parses(key string) bool {
	_, err := ParseMapKey(key)
	return err == nil
}

// isApplied reports whether the last-applied state has the marks, too, or does not exist. It
// compares text, because it is called for each event.
func (t tags) isApplied(key, lastApplied string) bool {
	return lastApplied == "" ||
		strings.Contains(lastApplied, `"`+plan.MapController+`":"`+t.controller+`"`) &&
			strings.Contains(lastApplied, `"`+plan.MapKey+`":"`+key+`"`)
}

// appliedTags returns the marks of the last-applied state; they are zero if it does not have all of
// them.
func appliedTags(lastApplied string) tags {
	if !strings.Contains(lastApplied, plan.MapController) {
		return tags{}
	}
	var state struct {
		Metadata struct{ Labels, Annotations map[string]string }
	}
	if err := json.Unmarshal([]byte(lastApplied), &state); err != nil { // not the engine's
		return tags{}
	}
	t := tags{
		controller: state.Metadata.Annotations[plan.MapController], key: state.Metadata.Annotations[plan.MapKey],
		hash: state.Metadata.Labels[plan.MapKey],
	}
	if t.controller == "" || t.key == "" || len(t.key) > maxMapKey || Hash(t.key) != t.hash {
		return tags{}
	}
	return t
}

// byPart indexes outputs by owner, map controller and hash of the map key. Objects with a part of
// the marks are indexed by their owner alone. All map controllers share it.
var byPart = view.NewIndex("map outputs", func(o *object.Object) []string {
	owner := o.ControllerRef()
	if owner == nil {
		return nil
	}
	switch t := readTags(o); {
	case t == (tags{}):
		return nil
	case t.lost():
		return []string{lostValue(owner.UID)}
	default:
		return []string{partValue(owner.UID, t.controller, t.hash)}
	}
})

func partValue(owner types.UID, controller, hash string) string {
	return string(owner) + "/" + controller + "/" + hash
}

func lostValue(owner types.UID) string { return string(owner) }

// hashPrefix begins the part of a key for outputs of which only the hash of the map key is known.
// No map key begins with it.
const hashPrefix = "#"

// partOf returns the part of an output: its map key or, if that is lost, hashPrefix and its hash.
// It reports whether the output has one and belongs to the controller.
func (s *Shape) partOf(o *object.Object) (string, bool) {
	t := readTags(o)
	switch {
	case t.controller != s.object.Name() || t.lost():
		return "", false
	case t.key == "":
		return hashPrefix + t.hash, true
	}
	return t.key, true
}

// hashOf returns the hash of the map key of a part.
func hashOf(part string) string {
	if hash, isHashed := strings.CutPrefix(part, hashPrefix); isHashed {
		return hash
	}
	return Hash(part)
}

// marks returns the labels and annotations of the outputs of a part. The map key is not among them
// if only its hash is known.
func (s *Shape) marks(part string) (labels, annotations map[string]string) {
	labels = map[string]string{plan.MapKey: hashOf(part)}
	annotations = map[string]string{plan.MapController: s.object.Name()}
	if !strings.HasPrefix(part, hashPrefix) {
		annotations[plan.MapKey] = part
	}
	return labels, annotations
}

// repairs returns the writes that restore the marks of the outputs of a part.
func (s *Shape) repairs(part string, lists []view.List) []plan.Action {
	var actions []plan.Action
	for _, l := range lists {
		for o := range l.All() {
			if a, broken := s.repair(part, l.Resource(), o); broken {
				actions = append(actions, a)
			}
		}
	}
	return actions
}

// repair returns the write that marks an object as an output of a part. It reports whether one is
// necessary.
func (s *Shape) repair(part string, r object.Resource, o *object.Object) (plan.Action, bool) {
	if o.Deleting() {
		return plan.Action{}, false
	}
	labels, annotations := s.marks(part)
	a := plan.Action{
		Verb: plan.Tag, Resource: r, Ref: o.Ref(), UID: o.UID(), ResourceVersion: o.ResourceVersion(),
		Labels: plan.Patch(o.Labels(), pointers(labels)), Annotations: plan.Patch(o.Annotations(), pointers(annotations)),
		Why: "its marks were edited or removed",
	}
	for key := range a.Labels {
		a.Fields = append(a.Fields, "metadata.labels."+key)
	}
	for key := range a.Annotations {
		a.Fields = append(a.Fields, "metadata.annotations."+key)
	}
	slices.Sort(a.Fields)
	return a, len(a.Fields) > 0
}

func pointers(values map[string]string) map[string]*string {
	all := make(map[string]*string, len(values))
	for key, value := range values {
		all[key] = &value
	}
	return all
}
