package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/hookloop/hookloop/engine/dryrun"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/memapi"
	"k8s.io/klog/v2"
)

const (
	// maxSyncs limits the syncs until nothing is left to write. A hook may create one child after the
	// other.
	maxSyncs = 30
	// maxSame limits how many syncs in a row may write the same objects.
	maxSame = 4
)

// settling follows a hook until its answers change nothing any more.
type settling struct {
	*round
	world *world
	// question and answer are those of the last sync; before are those of the sync before.
	question, before *hook.Question
	answer           *hook.Answer
	// desired are the children as they were first desired, and set are the fields that only the
	// server has set, by child.
	desired map[string]map[string]any
	set     map[string][]string
	failed  bool
}

// fixedPoint lets the engine write the hook's answers to an API server in memory until nothing is
// left to write.
func (r *round) fixedPoint() {
	s := &settling{round: r, desired: map[string]map[string]any{}, set: map[string][]string{}}
	opened := map[hook.Op]*hook.Opened{}
	for op, t := range r.targets {
		opened[op] = &hook.Opened{Hook: hook.Func(s.reply), Address: t.address}
	}
	var err error
	s.world, err = r.subject.newWorld(r.ctx, opened)
	if err != nil {
		r.report.skip("the fixed point: %v", err)
		return
	}
	defer s.world.server.Close()
	defer s.world.Close()
	s.run()
	s.echoes()
}

// reply asks the hook in place of a transport.
func (s *settling) reply(_ context.Context, q *hook.Question) (*hook.Answer, error) {
	with := *q
	with.Related = s.related
	got := s.put("the parent, with what the engine has written", &with)
	for range maxRequiring {
		if got.answer == nil || !s.requiresMore(got.answer) {
			break
		}
		s.require(got.answer)
		with.Related = s.related
		got = s.put("the parent, with what the engine has written, and related objects", &with)
	}
	if got.answer == nil {
		s.failed = true
		return nil, &hook.Error{Kind: hook.Failed, Hook: string(q.Op), Err: errors.New("no answer")}
	}
	s.before = s.question
	s.question = &with
	s.answer = got.answer
	s.observe(&with)
	for name, child := range children(&with, got.answer) {
		if _, known := s.desired[name]; !known {
			s.desired[name] = child
		}
	}
	return got.answer, nil
}

// run syncs until nothing is written any more.
func (s *settling) run() {
	var last []string
	for again, i := 0, 0; ; i++ {
		s.world.Run(klog.NewContext(s.ctx, logr.Discard())) // the report has the faults
		writes := s.world.writes()
		switch {
		case s.failed || s.ctx.Err() != nil:
			return
		case s.question == nil:
			s.report.skip("the fixed point: the engine has not asked the hook: %s", s.world.reason())
			return
		case len(writes) == 0:
			if refused := s.world.refused(); refused != "" {
				s.foundSmall(ruleRefused, "the parent, with what the engine has written", s.question, s.question, refused)
			}
			return
		}
		names := namesOf(writes)
		again++
		if !slices.Equal(names, last) {
			again = 0
		}
		last = names
		if again == maxSame || i == maxSyncs {
			s.endless(i+1, writes)
			return
		}
	}
}

// endless records that the writes do not end, unless a finding of pure has the cause.
func (s *settling) endless(syncs int, writes []memapi.Write) {
	if s.impure {
		return
	}
	got := fmt.Sprintf("after %s, the engine still writes %s", count(syncs, "sync"), strings.Join(namesOf(writes), ", "))
	if s.before != nil && s.before.Parent != nil {
		if changed := changes(s.before, s.question); changed != "" {
			got += ": " + changed
		}
	}
	s.shrunk(ruleFixedPoint, "the parent, with what the engine has written", s.question, got, s.changesItsOwn)
}

// changesItsOwn reports for each question whether the answer still differs from the observed state.
func (s *settling) changesItsOwn(_ context.Context, all []*hook.Question) []bool {
	out := make([]bool, len(all))
	for i, q := range all {
		if a := s.quiet(q); a != nil {
			out[i] = unsettled(q, a)
		}
	}
	return out
}

// unsettled reports whether an answer differs from what its question shows: a child or a field that
// is not observed, or another status.
func unsettled(q *hook.Question, a *hook.Answer) bool {
	observed := observedChildren(q)
	for name, child := range children(q, a) {
		o := observed[name]
		dryrun.Strip(child)
		if o == nil || !dryrun.Equal(dryrun.Overlay(o, child), o) {
			return true
		}
	}
	parent, err := q.Parent.Map()
	status, _ := decoded(a.Status).(map[string]any)
	if err != nil || status == nil || !q.Kind.Descriptor().OwnsStatus {
		return false
	}
	before, _ := parent["status"].(map[string]any)
	return !dryrun.Equal(dryrun.Overlay(before, status), before)
}

// observedChildren returns the observed children of a question by kind and name.
func observedChildren(q *hook.Question) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, g := range q.Children {
		for _, o := range g.Objects {
			if m, err := o.Map(); err == nil {
				all[childName(o.Raw())] = m
			}
		}
	}
	return all
}

// changes names the first fields that differ between what two questions show.
func changes(before, after *hook.Question) string {
	d := differ{}
	d.parts(withoutVersions(observedChildren(before)), withoutVersions(observedChildren(after)))
	b, _ := before.Parent.Map()
	a, _ := after.Parent.Map()
	d.value("the parent's status", b["status"], a["status"])
	return listed(d.found)
}

// withoutVersions removes the fields that change with each write.
func withoutVersions(all map[string]map[string]any) map[string]map[string]any {
	for _, m := range all {
		if metadata, ok := m["metadata"].(map[string]any); ok {
			delete(metadata, "resourceVersion")
			delete(metadata, "generation")
		}
	}
	return all
}

// observe finds the fields of new children that only the server has set.
func (s *settling) observe(q *hook.Question) {
	for name, observed := range observedChildren(q) {
		desired, known := s.desired[name]
		if _, seen := s.set[name]; seen || !known {
			continue
		}
		s.set[name] = []string{}
		dryrun.Differences(desired, observed, func(path string, before, after any) {
			if before == nil && after != nil {
				s.set[name] = append(s.set[name], path)
			}
		})
	}
}

// echoes changes children as a user might, and looks in the answer for fields that only the server
// sets. To keep a child as it is, a hook may return the observed object; if it repairs the child,
// it must not return those fields.
func (s *settling) echoes() {
	if s.answer == nil {
		return
	}
	const name = "the parent, with children that a user has changed"
	changed := s.drifted(s.question)
	got := s.put(name, changed)
	if got.answer == nil {
		return
	}
	found := echoed(changed, got.answer, s.set)
	if found == "" {
		return
	}
	s.shrunk(ruleEcho, name, changed, found, func(_ context.Context, all []*hook.Question) []bool {
		out := make([]bool, len(all))
		for i, q := range all {
			a := s.quiet(q)
			out[i] = a != nil && echoed(q, a, s.set) != ""
		}
		return out
	})
}

// drifted returns a question with another value in one field of each child that the hook has set.
func (s *settling) drifted(q *hook.Question) *hook.Question {
	other := *q
	other.Children = slices.Clone(q.Children)
	for g, group := range q.Children {
		other.Children[g].Objects = slices.Clone(group.Objects)
		for i, o := range group.Objects {
			other.Children[g].Objects[i] = drift(o, s.desired[childName(o.Raw())])
		}
	}
	return &other
}

func first(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return path[0]
}

// drift returns an object with another value in a field that is desired, or the object itself.
func drift(o *object.Object, desired map[string]any) *object.Object {
	changed := o
	walk(desired, nil, func(path []string, value any) {
		if changed != o || slices.Contains([]string{"apiVersion", "kind", "metadata"}, first(path)) {
			return
		}
		switch v := value.(type) {
		case string:
			value = v + "-changed"
		case int64:
			value = v + 1
		case bool:
			value = !v
		default:
			return
		}
		if other, err := replaced(o, path, value); err == nil {
			changed = other
		}
	})
	return changed
}

// echoed names the fields of an answer that only the server has set, with the server's values.
func echoed(q *hook.Question, a *hook.Answer, set map[string][]string) string {
	observed := observedChildren(q)
	for _, name := range slices.Sorted(maps.Keys(set)) {
		child := children(q, a)[name]
		if observed[name] == nil || child == nil || dryrun.Equal(child, observed[name]) {
			continue
		}
		var paths []string
		same(child, observed[name], "", func(path string) {
			if slices.Contains(set[name], path) {
				paths = append(paths, path)
			}
		})
		if len(paths) > 0 {
			slices.Sort(paths)
			more := ""
			if n := len(paths) - maxDifferences; n > 0 {
				paths = paths[:maxDifferences]
				more = fmt.Sprintf(" and %d more", n)
			}
			return fmt.Sprintf("%s: the answer has %s%s, which the server has set", name, strings.Join(paths, ", "), more)
		}
	}
	return ""
}

// same visits the places at which two values are equal. The paths are those of dryrun.Differences.
func same(a, b any, path string, visit func(path string)) {
	if path != "" && dryrun.Equal(a, b) {
		visit(path)
	}
	switch a := a.(type) {
	case map[string]any:
		other, _ := b.(map[string]any)
		for key, value := range a {
			if there, has := other[key]; has {
				same(value, there, strings.TrimPrefix(path+"."+key, "."), visit)
			}
		}
	case []any:
		other, _ := b.([]any)
		for i := range min(len(a), len(other)) {
			same(a[i], other[i], fmt.Sprintf("%s[%d]", path, i), visit)
		}
	}
}

// namesOf names the objects of writes.
func namesOf(writes []memapi.Write) []string {
	var names []string
	for _, w := range writes {
		name := w.Resource
		if w.Subresource != "" {
			name += "/" + w.Subresource
		}
		names = append(names, fmt.Sprintf("%s %s", name, strings.TrimPrefix(w.Namespace+"/"+w.Name, "/")))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// reason is the cause of a sync without a question.
func (w *world) reason() string {
	if w.Err() != nil {
		return w.Err().Error()
	}
	return "the controller does not select the parent"
}
