package plan

import (
	"encoding/json"
	"fmt"

	"github.com/hookloop/hookloop/engine/merge"
	"github.com/hookloop/hookloop/engine/object"
)

// maxAnnotations is the API server's limit for all annotations of an object, in bytes.
const maxAnnotations = 256 << 10

// Make decides what to write: deletes first, then creates and updates in the hook's order. Children that are being deleted are left
// alone. The error is an *AnswerError about a desired child that cannot be written.
func Make(observed *Observed, desired *Desired, mem Memory) (Result, error) {
	p := planner{observed: observed, memory: mem, wanted: make(map[object.Ref]bool, len(desired.Children))}
	p.result.Settled = make(Memory, len(desired.Children))
	for _, c := range desired.Children {
		p.wanted[c.Ref] = true
	}
	p.deletes()
	for i, c := range desired.Children {
		if err := p.child(c); err != nil {
			return Result{}, &AnswerError{Index: i, Item: c.Ref.String(), Problem: err.Error()}
		}
	}
	return p.result, nil
}

type planner struct {
	observed *Observed
	memory   Memory
	wanted   map[object.Ref]bool
	result   Result
}

// deletes removes observed children that are not desired.
func (p *planner) deletes() {
	for _, d := range p.observed.Scope.Declared {
		for _, o := range p.observed.Children.Of(d.Resource.GVK) {
			switch {
			case p.wanted[o.Ref()]:
			case o.Deleting():
				p.result.Pending++
			default:
				p.remove(d, o, "no longer desired", 0)
			}
		}
	}
}

func (p *planner) remove(d Declared, o *object.Object, why string, hash uint64) {
	p.result.Actions = append(p.result.Actions, Action{
		Verb: Delete, Resource: d.Resource, Ref: o.Ref(), UID: o.UID(), Why: why, Desired: hash,
	})
}

// child decides about one desired child. What is remembered as settled costs two comparisons.
func (p *planner) child(c Child) error {
	o := p.observed.Children.Get(c.Ref)
	known := p.memory[c.Ref]
	switch {
	case o == nil:
		return p.create(c)
	case o.Deleting():
		p.result.Pending++
		return nil
	case known.Desired == c.Hash && known.ResourceVersion == o.ResourceVersion():
		p.settled(c, known)
		return nil
	case c.Declared.Method == OnDelete || c.Declared.Method == "":
		p.result.Held++
		return nil
	}
	return p.update(c, o, known)
}

func (p *planner) settled(c Child, s Settled) {
	p.result.Unchanged++
	p.result.Settled[c.Ref] = s
}

func (p *planner) create(c Child) error {
	body, err := c.Map()
	if err != nil {
		return err
	}
	if err := annotate(body, body); err != nil {
		return err
	}
	own(body, p.observed.Scope.Owner)
	p.result.Actions = append(p.result.Actions, Action{
		Verb: Create, Resource: c.Declared.Resource, Ref: c.Ref, Body: body, Owner: p.observed.Scope.Owner, Desired: c.Hash, Why: "desired, not there",
	})
	return nil
}

// update compares and, where there is a difference, changes or recreates the child by its method.
func (p *planner) update(c Child, o *object.Object, known Settled) error {
	desired, err := c.Map()
	if err != nil {
		return err
	}
	before, err := o.Map()
	if err != nil {
		return err
	}
	last, err := lastApplied(o)
	if err != nil {
		return err
	}
	merged := merge.Apply(before, last, desired)
	why := merge.Diff(before, merged)
	recreate := c.Declared.Method == Recreate || c.Declared.Method == RollingRecreate
	if why == "" && (recreate || merge.Equal(last, desired)) {
		p.settled(c, Settled{Desired: c.Hash, ResourceVersion: o.ResourceVersion(), Body: known.Body})
		return nil
	}
	if known.Desired == c.Hash && known.Body != 0 && known.Body == StableHash(before) {
		p.settled(c, Settled{Desired: c.Hash, ResourceVersion: o.ResourceVersion(), Body: known.Body})
		return nil
	}
	if recreate {
		p.remove(c.Declared, o, "recreate: "+why, 0)
		return nil
	}
	if why == "" {
		why = "metadata.annotations: last-applied-configuration"
	}
	if err := annotate(merged, desired); err != nil {
		return err
	}
	p.result.Actions = append(p.result.Actions, Action{
		Verb: Update, Resource: c.Declared.Resource, Ref: c.Ref, UID: o.UID(), ResourceVersion: o.ResourceVersion(),
		Body: merged, Owner: p.observed.Scope.Owner, Desired: c.Hash, Why: why,
	})
	return nil
}

// lastApplied decodes the annotation; nil where the object has none. One that is no JSON object was not written by us and counts as none.
func lastApplied(o *object.Object) (map[string]any, error) {
	if o.LastApplied() == "" {
		return nil, nil
	}
	last, err := object.DecodeMap([]byte(o.LastApplied()))
	if err != nil {
		return nil, nil //nolint:nilerr // the next write replaces it
	}
	return last, nil
}

// annotate puts the last-applied annotation into body.
func annotate(body, desired map[string]any) error {
	last, err := json.Marshal(desired)
	if err != nil {
		return err
	}
	metadata := child(body, "metadata")
	annotations, ok := metadata["annotations"].(map[string]any)
	size := len(object.LastAppliedAnnotation) + len(last)
	grown := make(map[string]any, len(annotations)+1)
	if ok {
		for key, value := range annotations {
			text, _ := value.(string)
			size += len(key) + len(text)
			grown[key] = value
		}
	}
	if size > maxAnnotations {
		return fmt.Errorf("its annotations would be %d bytes with the last applied state in %s, expected at most %d; "+
			"make the object smaller", size, object.LastAppliedAnnotation, maxAnnotations)
	}
	grown[object.LastAppliedAnnotation] = string(last)
	metadata["annotations"] = grown
	return nil
}

// own adds the owner reference to a body that is to be created.
func own(body map[string]any, owner Owner) {
	metadata := child(body, "metadata")
	references, _ := metadata["ownerReferences"].([]any)
	metadata["ownerReferences"] = append(references, map[string]any{
		"apiVersion": owner.GVK.GroupVersion().String(), "kind": owner.GVK.Kind, "name": owner.Name, "uid": string(owner.UID),
		"controller": true, "blockOwnerDeletion": true,
	})
}
