package customize

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/hook/wraptest"
	"github.com/hookloop/hookloop/engine/internal/mentions"
	"github.com/hookloop/hookloop/engine/object"
)

// partOf returns the question about a part of a parent.
func partOf(parent *object.Object, part string) *hook.Question {
	return &hook.Question{
		Kind: hook.Mapping, Op: hook.Map, Parent: parent, MapKey: part, Key: hook.Key{Parent: parent.Ref(), Part: part},
	}
}

// TestPartsShareTheCustomizeAnswer asks about many parts of a parent at the same time: the
// customize hook is asked once, and an event enqueues the parent once.
func TestPartsShareTheCustomizeAnswer(t *testing.T) {
	w := newFixture(t, hook.RelatedRule{APIVersion: "v1", Resource: "pages"})
	w.server.Put(pages, page("shop", "a"))
	web := parent(t, "web", "1")
	var syncs sync.WaitGroup
	for i := range 50 {
		syncs.Go(func() {
			if _, err := w.put(partOf(web, fmt.Sprint("part-", i))); err != nil {
				t.Error(err)
			}
		})
	}
	syncs.Wait()
	if w.asked != 1 || len(w.parents) != 1 {
		t.Errorf("the hook was asked %d times, %d states are kept; want one of each", w.asked, len(w.parents))
	}
	keys := make(chan hook.Key, 100)
	w.Enqueue = func(key hook.Key, _ *object.Object) { keys <- key }
	w.server.Put(pages, page("shop", "b"))
	if key := <-keys; key != hook.ParentKey(web.Ref()) {
		t.Errorf("an event enqueues %s, want the parent", key)
	}
	w.Forget(hook.Key{Parent: web.Ref(), Part: "part-1"})
	if _, err := w.put(partOf(web, "part-2")); err != nil || w.asked != 1 {
		t.Errorf("after a part was forgotten, the hook was asked %d times (%v), want once", w.asked, err)
	}
}

// TestPartsShareAFailure has the customize hook fail while other parts wait for it: all get its
// error. If only the caller gave up, the others ask themselves.
func TestPartsShareAFailure(t *testing.T) {
	web := parent(t, "web", "1")
	for name, abandon := range map[string]bool{"it fails": false, "its caller gives up": true} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			asked := make(chan struct{})
			release := make(chan struct{})
			w.Hook = &hook.Opened{Hook: hook.Func(func(ctx context.Context, _ *hook.Question) (*hook.Answer, error) {
				w.asked++
				if w.asked > 1 {
					return &hook.Answer{}, nil
				}
				close(asked)
				<-release
				if abandon {
					cancel()
					return nil, ctx.Err()
				}
				return nil, errors.New("broken")
			})}
			first := make(chan error, 1)
			second := make(chan error, 1)
			rules := func(ctx context.Context, into chan error) {
				_, err := w.Customizer.rules(ctx, hook.ParentKey(web.Ref()), partOf(web, "a"))
				into <- err
			}
			go rules(ctx, first)
			<-asked
			go rules(t.Context(), second)
			close(release)
			if err := <-first; err == nil {
				t.Error("the first question has no error")
			}
			// The second one may have come after the end of the first; then it has asked itself.
			if err := <-second; abandon && err != nil || !abandon && w.asked == 1 && err == nil {
				t.Errorf("the second question has the error %v after %d calls", err, w.asked)
			}
		})
	}
}

// TestRequirementsOfParts has two parts of a parent require one page each: an event of a page
// enqueues the part that requires it, and a part is forgotten alone.
func TestRequirementsOfParts(t *testing.T) {
	w := newFixture(t)
	w.Hook = nil
	keys := make(chan hook.Key, 100)
	w.Enqueue = func(key hook.Key, _ *object.Object) { keys <- key }
	web := parent(t, "web", "1")
	next := w.Wrap(&hook.Opened{Hook: hook.Func(func(_ context.Context, q *hook.Question) (*hook.Answer, error) {
		return &hook.Answer{Requirements: []hook.RelatedRule{
			{APIVersion: "v1", Resource: "pages", Namespace: "shop", Names: []string{q.MapKey}, Name: "page"},
		}}, nil
	})})
	ask := func(part string) {
		t.Helper()
		if _, err := next.Ask(t.Context(), partOf(web, part)); err != nil {
			t.Fatal(err)
		}
	}
	ask("red")
	ask("blue")
	for _, part := range []string{"blue", "red"} {
		w.server.Put(pages, page("shop", part))
		if key := <-keys; key.Part != part || key.Parent != web.Ref() {
			t.Errorf("an event of %s enqueues %s", part, key)
		}
	}
	held := func(name string) []string {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.Customizer.mu.Lock()
		defer w.Customizer.mu.Unlock()
		return mentions.Of([]any{w.parents, w.parts, w.index, w.watchUsers()}, name)
	}
	w.Forget(hook.Key{Parent: web.Ref(), Part: "red"})
	if left := held("red"); len(left) > 0 || len(held("blue")) == 0 {
		t.Errorf("after the part is forgotten it is mentioned at %v, the other at %v", left, held("blue"))
	}
	ask("red")
	w.Forget(hook.ParentKey(web.Ref()))
	if left := held("web"); len(left) > 0 {
		t.Errorf("after the parent is forgotten it is mentioned at %v", left)
	}
}

// TestInvalidateReachesParts has a trigger about a parent drop the requirements of all its parts.
func TestInvalidateReachesParts(t *testing.T) {
	w := newFixture(t)
	w.Hook = nil
	web := parent(t, "web", "1")
	other := parent(t, "other", "1")
	rules := []hook.RelatedRule{{APIVersion: "v1", Resource: "pages", Name: "page"}}
	next := w.Wrap(&hook.Opened{Hook: hook.Func(func(context.Context, *hook.Question) (*hook.Answer, error) {
		return &hook.Answer{Requirements: rules}, nil
	})})
	for _, q := range []*hook.Question{partOf(web, "red"), partOf(web, "blue"), partOf(other, "red")} {
		if _, err := next.Ask(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	w.Invalidate(hook.ParentKey(web.Ref()))
	var valid []string
	for key, a := range w.parents {
		if a.latest != nil {
			valid = append(valid, key.String())
		}
	}
	slices.Sort(valid)
	if diff := cmp.Diff([]string{"shop/other#red"}, valid); diff != "" {
		t.Errorf("valid requirements (-want +got):\n%s", diff)
	}
}

// TestRefreshOfParts has many parts fail again and again: the customize hook is asked again at most
// every 10 seconds.
func TestRefreshOfParts(t *testing.T) {
	w := newFixture(t)
	web := parent(t, "web", "1")
	for _, step := range []struct {
		name string
		wait bool
		want int
	}{{"first", false, 1}, {"immediately", false, 1}, {"later", true, 2}} {
		if step.wait {
			w.clock.Step(minPartRefresh)
		}
		for i := range 10 {
			q := partOf(web, fmt.Sprint(i))
			w.Refresh(q.Key)
			if _, err := w.put(q); err != nil {
				t.Fatal(err)
			}
		}
		if w.asked != step.want {
			t.Errorf("%s: the hook was asked %d times, want %d", step.name, w.asked, step.want)
		}
	}
}

func TestAHookWithRelatedObjectsHasEveryField(t *testing.T) {
	w := &Customizer{}
	// The caller closes the hook itself.
	missing := wraptest.Missing(w.Wrap(wraptest.Full()))
	if !slices.Equal(missing, []string{"Close"}) {
		t.Errorf("the wrapped hook does not have %q, expected all fields but Close", missing)
	}
}
