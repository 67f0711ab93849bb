package composite

import (
	"slices"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/view"
	"github.com/hookloop/hookloop/internal/engine/claim"
	"github.com/hookloop/hookloop/internal/engine/plan"
	"github.com/hookloop/hookloop/internal/engine/shape"
	"k8s.io/apimachinery/pkg/labels"
)

// Observe reads a parent and what belongs to it. It returns nil for a parent that is gone, or that
// leaves (is being deleted or no longer selected) without our finalizer.
func (s *Shape) Observe(reader view.Reader, key hook.Key) (*plan.Observed, error) {
	parents, err := reader.View(s.rules.Resource)
	if err != nil {
		return nil, err
	}
	parent := parents.Get(key.Parent.Namespace, key.Parent.Name)
	if parent == nil {
		s.looks.forget(key)
		return nil, nil
	}
	leaving := s.rules.Departing(parent)
	if leaving && !s.rules.HasFinalizer(parent) {
		s.looks.forget(key)
		return nil, nil
	}
	selector, err := claim.Selector(parent, s.generate)
	if err != nil && leaving { // what it owns is known without; it must not be held up for ever
		selector, err = labels.Everything(), nil
	}
	if err != nil {
		return nil, &shape.ParentError{Field: "spec.selector", Problem: err.Error()}
	}
	children, claims, err := s.classify(reader, key, parent, selector, leaving)
	if err != nil {
		return nil, err
	}
	observed := &plan.Observed{
		Key: key, Parent: parent,
		Children:     children,
		Finalizing:   leaving,
		SkipChildren: s.rules.SkipChildren(parent),
		Scope:        s.scope(parent, selector),
	}
	observed.Prepare = append(s.rules.Prepare(parent), s.claims(observed, claims)...)
	if s.rolling == nil || observed.SkipChildren {
		return observed, nil
	}
	var adopt []plan.Action
	if observed.Revisions, adopt, err = s.records(reader, observed); err != nil {
		return nil, err
	}
	observed.Prepare = append(observed.Prepare, adopt...)
	return observed, nil
}

// marks are those of composite controllers' children: they are no decorator's.
var marks = map[string]string{claim.DecoratorAnnotation: ""}

func (s *Shape) scope(parent *object.Object, selector labels.Selector) plan.Scope {
	scope := plan.Scope{
		ChildKinds:      s.declared,
		Owner:           plan.Owner{GVK: parent.GVK(), Name: parent.Name(), UID: parent.UID(), Resource: s.rules.Resource},
		ParentNamespace: parent.Namespace(),
		Selector:        selector,
		Marks:           marks,
	}
	if s.generate {
		scope.Labels = map[string]string{claim.UIDLabel: string(parent.UID())}
	}
	return scope
}

// claims are the writes by which children come and go.
func (s *Shape) claims(o *plan.Observed, claims claim.Claims) []plan.Action {
	var actions []plan.Action
	for _, child := range claims.Adopt {
		actions = append(actions, s.claim(plan.Adopt, child, o.Scope.Owner, "the parent's selector matches an orphan"))
	}
	for _, child := range claims.Release {
		actions = append(actions, s.claim(plan.Release, child, o.Scope.Owner, "the parent's selector no longer matches"))
	}
	return actions
}

func (s *Shape) claim(verb plan.Verb, child *object.Object, owner plan.Owner, why string) plan.Action {
	i := slices.IndexFunc(s.declared, func(d plan.ChildKind) bool { return d.Resource.GVK == child.GVK() })
	return claimed(verb, s.declared[i].Resource, child, owner, why)
}

func claimed(verb plan.Verb, r object.Resource, o *object.Object, owner plan.Owner, why string) plan.Action {
	return plan.Action{
		Verb:            verb,
		Resource:        r,
		Ref:             o.Ref(),
		UID:             o.UID(),
		ResourceVersion: o.ResourceVersion(),
		Owner:           owner,
		Why:             why,
	}
}
