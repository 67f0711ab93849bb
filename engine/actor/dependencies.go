package actor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/panics"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxChain bounds the objects that a search for a circle visits.
const maxChain = 1000

// awaitDependencies reports whether the dependencies of the object are met. If not, the conditions
// name the missing ones, and their events bring the object back.
func (r *run[T]) awaitDependencies(ctx context.Context) (bool, error) {
	dependencies, err := r.declared(ctx, r.target)
	if err != nil {
		return false, r.fail(ctx, "Dependencies", err)
	}
	var problems []problem
	count := 0
	for _, d := range dependencies {
		if d.ignored() {
			continue
		}
		count++
		p, err := r.problemOf(d)
		if err != nil {
			return false, r.fail(ctx, "Dependencies", err)
		}
		if p != nil {
			problems = append(problems, *p)
		}
	}
	switch {
	case count == 0:
		return true, r.removeCondition(ctx, ConditionDependenciesMet)
	case len(problems) > 0:
		return false, r.wait(ctx, problems)
	}
	return true, r.met(ctx, count)
}

// met records that the dependencies are met. A circle of them is reported: none of its objects ends
// before all of them are deleted.
func (r *run[T]) met(ctx context.Context, count int) error {
	met := report.Condition{
		Type: ConditionDependenciesMet, Status: metav1.ConditionTrue, Reason: reasonMet,
		Message: fmt.Sprintf("all dependencies are met: %d", count),
	}
	// The reads are no references: a change of the circle changes the condition of the next object.
	circle, err := r.circle(ctx, controller.Untracked(r.rt))
	switch {
	case err != nil:
		return r.fail(ctx, "Dependencies", err)
	case circle == "":
		return r.save(ctx, met)
	}
	met.Reason = reasonCircle
	met.Message += ", but the " + circle + "; none of the objects ends before all of them are deleted"
	before := r.observed.ResourceVersion()
	if err := r.save(ctx, met); err != nil {
		return err
	}
	if r.observed.ResourceVersion() != before { // it is news
		r.rt.Event(r.target, controller.Warning, reasonCircle, met.Message)
	}
	return nil
}

// declared returns the dependencies that an object declares. A panic becomes an error.
func (r *run[T]) declared(ctx context.Context, o T) (all []Dependency, err error) {
	defer panics.Recover(ctx, &err, "panic in the dependencies of an object", "actor", r.name, "key", r.key)
	return r.dependencies(o), nil
}

// problemOf returns why a dependency is not met; nil if it is.
func (r *run[T]) problemOf(d Dependency) (*problem, error) {
	found, p, err := r.find(d)
	if p != nil || err != nil {
		return p, err
	}
	if text := d.check(found); text != "" {
		return &problem{reasonNotReady, r.nameOf(d) + ": " + text}, nil
	}
	return nil, nil
}

// nameOf names a dependency with its kind.
func (r *run[T]) nameOf(d Dependency) string {
	if k, ok := r.kinds[d.of.id]; ok {
		d.key = d.in(r.key.Namespace, k.resource.Namespaced || !k.served)
		return d.name(object.KindString(k.gvk))
	}
	return d.name(d.of.String())
}

// find reads the object of a dependency. Without one it returns why.
func (r *run[T]) find(d Dependency) (Object, *problem, error) {
	name := r.nameOf(d)
	k, ok := r.kinds[d.of.id]
	switch {
	case !ok:
		return nil, &problem{reasonUndeclared, fmt.Sprintf(
			"%s: actor %q does not declare the type; expected DependsOn", name, r.name)}, nil
	case d.unset:
		return nil, &problem{reasonNotSet, name + " is not set"}, nil
	case !k.served:
		return nil, &problem{reasonNotServed, name + ": the API server does not serve the kind"}, nil
	}
	found, err := d.of.get(r.rt, d.in(r.key.Namespace, k.resource.Namespaced))
	var invalid *controller.DecodeError
	switch {
	case controller.IsNotFound(err):
		return nil, &problem{reasonNotFound, name + " does not exist"}, nil
	case errors.As(err, &invalid):
		return nil, &problem{reasonInvalid, err.Error()}, nil
	case err != nil:
		return nil, nil, err
	}
	return found, nil, nil
}

// wait records the missing dependencies on the object.
func (r *run[T]) wait(ctx context.Context, problems []problem) error {
	circle, err := r.circle(ctx, r.rt)
	if err != nil {
		return r.fail(ctx, "Dependencies", err)
	}
	if circle != "" {
		problems = append([]problem{{reasonCircle, circle}}, problems...)
	}
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.message)
	}
	message := strings.Join(texts, "; ")
	r.pending = true
	return r.save(ctx,
		report.Condition{
			Type: ConditionDependenciesMet, Status: metav1.ConditionFalse, Reason: problems[0].reason, Message: message,
		},
		notSynced(reasonWaiting, message))
}

// circle returns a text about the circle of objects of this type that the object depends on;
// empty if there is none. Circles of several types do not pass Link.
func (r *run[T]) circle(ctx context.Context, reader controller.Reader) (string, error) {
	circle, err := findCircle([]controller.Key{r.key}, maxChain,
		func(key controller.Key) ([]controller.Key, error) { return r.chain(ctx, reader, key) })
	if errors.Is(err, errTooLarge) {
		return "", nil //nolint:nilerr // a long chain is not a circle
	}
	if err != nil || circle == nil {
		return "", err
	}
	var names []string
	for _, key := range circle {
		names = append(names, quoted(key))
	}
	return fmt.Sprintf("dependencies of %s form a circle: %s", r.kindText(), strings.Join(names, " → ")), nil
}

// chain returns the keys of the objects of this type that another one depends on.
func (r *run[T]) chain(ctx context.Context, reader controller.Reader, key controller.Key) ([]controller.Key, error) {
	o := r.target
	if key != r.key {
		found, err := controller.Get[T](reader, key)
		var invalid *controller.DecodeError
		switch {
		case controller.IsNotFound(err), errors.As(err, &invalid):
			return nil, nil
		case err != nil:
			return nil, err
		}
		o = found
	}
	dependencies, err := r.declared(ctx, o)
	switch {
	case err != nil && key != r.key: // that object reports it
		return nil, nil
	case err != nil:
		return nil, err
	}
	var keys []controller.Key
	for _, d := range dependencies {
		if d.of.id == r.of.id && !d.unset {
			keys = append(keys, d.in(key.Namespace, r.own().resource.Namespaced))
		}
	}
	return keys, nil
}

// populated returns a copy of the object with its dependencies populated.
func (r *run[T]) populated() (T, error) {
	var none T
	o, ok := r.target.DeepCopyObject().(T)
	if !ok {
		return none, fmt.Errorf("the copy of %s is a %T", r.observed.Ref(), r.target.DeepCopyObject())
	}
	for _, d := range r.dependencies(o) {
		if d.unset {
			continue
		}
		found, p, err := r.find(d)
		if err != nil {
			return none, err
		}
		if p == nil {
			d.fill(found)
		}
	}
	return o, nil
}

// DependencyOf returns the object of the target's only dependency of type D. It fails if the object
// does not exist.
func DependencyOf[D, T Object](ctx Context[T]) (D, error) {
	var none D
	all, err := DependenciesOf[D](ctx)
	switch {
	case err != nil:
		return none, err
	case len(all) != 1:
		return none, fmt.Errorf("%s has %d dependencies of type %s, expected one",
			ctx.run.observed.Ref(), len(all), TypeOf[D]())
	}
	return all[0], nil
}

// DependenciesOf returns the objects of the target's dependencies of type D, in the order of their
// declaration. It fails if one does not exist.
func DependenciesOf[D, T Object](ctx Context[T]) ([]D, error) {
	r := ctx.run
	id := TypeOf[D]().id
	var all []D
	for _, d := range r.dependencies(r.target) {
		if d.unset || d.of.id != id {
			continue
		}
		found, p, err := r.find(d)
		if err != nil {
			return nil, err
		}
		if p != nil {
			return nil, errors.New("dependency " + p.message)
		}
		typed, ok := found.(D)
		if !ok {
			return nil, fmt.Errorf("dependency %s is a %T", r.nameOf(d), found)
		}
		all = append(all, typed)
	}
	return all, nil
}
