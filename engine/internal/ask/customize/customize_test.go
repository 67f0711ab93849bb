package customize

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/cachetest"
	"github.com/hookloop/hookloop/engine/internal/watch/discovery"
	"github.com/hookloop/hookloop/engine/object"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	pages  = object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Page"}, Plural: "pages", Namespaced: true}
	books  = object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Book"}, Plural: "books", Namespaced: true}
	spaces = object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Plural: "namespaces"}
)

// fixture is a Customizer with an API server, the rules that the customize hook answers, and the
// parents that were enqueued.
type fixture struct {
	*Customizer
	t      *testing.T
	server *cachetest.Server
	clock  *clocktesting.FakeClock

	mu      sync.Mutex // guards the fields below
	served  []object.Resource
	changed chan struct{}
	rules   []hook.RelatedRule
	asked   int
	by      string // who answers
	during  func() // called while the customize hook answers
	// lookedUp is called before a resource is looked up; nil for nothing.
	lookedUp func(plural string)
	queued   []string
}

func newFixture(t *testing.T, rules ...hook.RelatedRule) *fixture {
	t.Helper()
	w := &fixture{
		t: t, server: cachetest.New(t), clock: clocktesting.NewFakeClock(time.Now()),
		served: []object.Resource{pages, spaces}, changed: make(chan struct{}), rules: rules,
	}
	c, err := cache.New(cache.Config{Config: w.server.Config()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	w.Customizer = New(Config{
		Kind: hook.Composite, Hook: &hook.Opened{Hook: hook.Func(w.customize), Address: "there"},
		Cache: c, Discovery: w, Enqueue: w.enqueue, Clock: w.clock,
	})
	t.Cleanup(w.Close)
	return w
}

func (w *fixture) customize(context.Context, *hook.Question) (*hook.Answer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	if w.during != nil {
		w.during()
	}
	return &hook.Answer{Related: w.rules}, nil
}

func (w *fixture) Resource(apiVersion, plural string) (object.Resource, error) {
	if w.lookedUp != nil {
		w.lookedUp(plural)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.served {
		if r.Plural == plural {
			return r, nil
		}
	}
	return object.Resource{}, &discovery.NotFoundError{APIVersion: apiVersion, Name: plural}
}

func (w *fixture) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

func (w *fixture) enqueue(key hook.Key, _ *object.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queued = append(w.queued, key.Parent.Name)
}

// sync asks about a parent as the pipeline does, and returns the names of the related objects that
// the hook is shown.
func (w *fixture) sync(parent *object.Object) ([]string, error) {
	w.t.Helper()
	return w.put(&hook.Question{Parent: parent})
}

func (w *fixture) put(q *hook.Question) ([]string, error) {
	w.t.Helper()
	var shown []string
	next := hook.Func(func(_ context.Context, q *hook.Question) (*hook.Answer, error) {
		for _, g := range q.Related {
			shown = append(shown, fmt.Sprint(g.Resource, g.NotFound))
			for _, o := range g.Objects {
				shown = append(shown, o.Ref().NamespacedName())
			}
		}
		return &hook.Answer{AnsweredBy: w.by}, nil
	})
	_, err := w.Wrap(&hook.Opened{Hook: next}).Ask(w.t.Context(), q)
	return shown, err
}

func (w *fixture) shows(parent *object.Object, want ...string) {
	w.t.Helper()
	got, err := w.sync(parent)
	if err != nil {
		w.t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s is shown (-want +got):\n%s", parent.Name(), diff)
	}
}

// showsOlder is shows for an earlier revision.
func (w *fixture) showsOlder(parent *object.Object, want ...string) {
	w.t.Helper()
	got, err := w.put(&hook.Question{Parent: parent, PreviousRevision: true})
	if err != nil {
		w.t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s is shown (-want +got):\n%s", parent.Name(), diff)
	}
}

func (w *fixture) eventually(what string, condition func() bool) {
	w.t.Helper()
	met := func(context.Context) (bool, error) { return condition(), nil }
	if err := wait.PollUntilContextTimeout(w.t.Context(), time.Millisecond, 10*time.Second, true, met); err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

func (w *fixture) awaitQueued(names ...string) {
	w.t.Helper()
	w.eventually(fmt.Sprint(names, " come to the queue"), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		slices.Sort(w.queued)
		if !slices.Equal(names, slices.Compact(w.queued)) {
			return false
		}
		w.queued = nil
		return true
	})
}

func parent(t *testing.T, name, generation string) *object.Object {
	t.Helper()
	o, err := object.Decode(
		[]byte(
			`{"apiVersion":"v1","kind":"Web","metadata":{"namespace":"shop","name":"` + name +
				`","uid":"u","generation":` + generation + `}}`,
		),
	)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func page(namespace, name string) string {
	return `{"apiVersion":"v1","kind":"Page","metadata":{"namespace":"` + namespace + `","name":"` + name + `"}}`
}

// labelled is a page with a label, as after an edit.
func labelled(namespace, name string) string {
	return strings.Replace(page(namespace, name), `"name"`, `"labels":{"a":"b"},"name"`, 1)
}

// TestWatchesAreOnDemand watches a resource while the rules about a parent name it.
func TestWatchesAreOnDemand(t *testing.T) {
	w := newFixture(t, hook.RelatedRule{APIVersion: "v1", Resource: "pages", Names: []string{"a"}})
	w.server.Put(pages, page("shop", "a"))
	first := parent(t, "first", "1")
	second := parent(t, "second", "1")
	w.shows(first, "pages.v1 false", "shop/a")
	w.shows(second, "pages.v1 false", "shop/a")
	w.shows(second, "pages.v1 false", "shop/a")
	if w.asked != 2 {
		t.Errorf("the hook was asked %d times about two parents", w.asked)
	}
	if _, ever := w.server.Watches(pages); ever != 1 {
		t.Errorf("%d watches for two parents", ever)
	}
	w.server.Put(pages, labelled("shop", "a"))
	w.awaitQueued("first", "second")
	w.server.Put(pages, page("shop", "b"))
	w.server.Delete(pages, "shop", "a")
	w.awaitQueued("first", "second")

	w.Forget(hook.ParentKey(first.Ref()))
	w.rules = nil
	w.shows(parent(t, "second", "2"))
	w.eventually("the watch ends with the last who needs it", func() bool {
		open, _ := w.server.Watches(pages)
		return open == 0
	})
}

// TestOnlyTheVersionChanges has an update without effect on a question: no parent is enqueued.
func TestOnlyTheVersionChanges(t *testing.T) {
	w := newFixture(t, hook.RelatedRule{APIVersion: "v1", Resource: "pages"})
	w.shows(parent(t, "web", "1"), "pages.v1 false")
	at := func(version, label string) *object.Object {
		o, err := object.Decode([]byte(`{"apiVersion":"v1","kind":"Page","metadata":{"namespace":"shop","name":"a",` +
			`"resourceVersion":"` + version + `","labels":{"a":"` + label + `"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	w.handle(cache.Event{Type: cache.Updated, Resource: pages, Old: at("1", "b"), New: at("2", "b")})
	if len(w.queued) > 0 {
		t.Errorf("%v is enqueued after a change of the version alone", w.queued)
	}
	w.handle(cache.Event{Type: cache.Updated, Resource: pages, Old: at("2", "b"), New: at("3", "c")})
	if len(w.queued) == 0 {
		t.Error("no parent is enqueued after a change of a label")
	}
}

// TestOldAndNewLabels enqueues the parent of a rule that selects an object before an event, after
// it, or both: then once.
func TestOldAndNewLabels(t *testing.T) {
	w := newFixture(t, hook.RelatedRule{APIVersion: "v1", Resource: "pages", LabelSelector: selects("a", "b")})
	w.shows(parent(t, "web", "1"), "pages.v1 false")
	page := func(label, text string) *object.Object {
		o, err := object.Decode([]byte(`{"apiVersion":"v1","kind":"Page","metadata":{"namespace":"shop","name":"a",` +
			`"labels":{"a":"` + label + `"}},"spec":{"text":"` + text + `"}}`))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for _, c := range []struct {
		name     string
		old, new *object.Object
		want     []string
	}{
		{"it appears", nil, page("b", ""), []string{"web"}},
		{"its text changes", page("b", ""), page("b", "more"), []string{"web"}},
		{"its label goes", page("b", ""), page("c", ""), []string{"web"}},
		{"its label comes", page("c", ""), page("b", ""), []string{"web"}},
		{"another one changes", page("c", ""), page("d", ""), nil},
		{"it goes", page("b", ""), nil, []string{"web"}},
	} {
		w.queued = nil
		w.handle(cache.Event{Resource: pages, Old: c.old, New: c.new})
		if diff := cmp.Diff(c.want, w.queued); diff != "" {
			t.Errorf("%s (-want +queued):\n%s", c.name, diff)
		}
	}
}

// TestNamespacesAreWatched brings the parents to the queue that select a namespace by its labels,
// when these change.
func TestNamespacesAreWatched(t *testing.T) {
	w := newFixture(t,
		hook.RelatedRule{APIVersion: "v1", Resource: "pages", NamespaceSelector: []byte(`{"matchLabels":{"a":"b"}}`)})
	w.server.Put(pages, page("shop", "a"))
	w.server.Put(spaces, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`)
	w.shows(parent(t, "web", "1"), "pages.v1 false")
	w.server.Put(spaces, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"a":"b"}}}`)
	w.awaitQueued("web")
	w.shows(parent(t, "web", "1"), "pages.v1 false", "shop/a")
}

// TestResourcesComeAndGo reports to the hook that a resource is not served, and has the parent
// looked at again when it is.
func TestResourcesComeAndGo(t *testing.T) {
	w := newFixture(t, hook.RelatedRule{APIVersion: "v1", Resource: "books"})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Follow(ctx) }()
	w.shows(parent(t, "web", "1"), "books.v1 true")
	for _, served := range [][]object.Resource{{books}, {pages}} {
		w.mu.Lock()
		w.served = served
		close(w.changed)
		w.changed = make(chan struct{})
		w.mu.Unlock()
		w.awaitQueued("web")
		w.shows(parent(t, "web", "1"), fmt.Sprint("books.v1 ", served[0] != books))
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Follow = %v", err)
	}
}

// TestForbidden is an error of the parent's sync, and no hindrance once it is allowed.
func TestForbidden(t *testing.T) {
	w := newFixture(t, hook.RelatedRule{APIVersion: "v1", Resource: "pages"})
	w.server.Refuse(pages, http.StatusForbidden)
	var unwatchable *cache.UnwatchableError
	if _, err := w.sync(parent(t, "web", "1")); !errors.As(err, &unwatchable) || !unwatchable.Forbidden() {
		t.Fatalf("error %v", err)
	}
	w.server.Refuse(pages, 0)
	w.shows(parent(t, "web", "1"), "pages.v1 false")
}

// TestAnotherAnswers has the customize hook asked anew when another build answers for the parent:
// what the old one wanted to see may hide what the new one needs.
func TestAnotherAnswers(t *testing.T) {
	w := newFixture(t, hook.RelatedRule{APIVersion: "v1", Resource: "pages"})
	w.served = append(w.served, books)
	w.server.Put(pages, page("shop", "a"))
	w.by = "old"
	web := parent(t, "web", "1")
	w.shows(web, "pages.v1 false", "shop/a")
	w.rules = []hook.RelatedRule{{APIVersion: "v1", Resource: "books"}}
	w.shows(web, "pages.v1 false", "shop/a")
	w.by = "new"
	w.shows(web, "pages.v1 false", "shop/a", "books.v1 false") // the first question shows that another one answers
	w.shows(web, "books.v1 false")
	if w.asked != 2 {
		t.Errorf("the customize hook was asked %d times, want 2", w.asked)
	}
}

// TestAnswersExpire has the customize hook asked anew when its answer has expired, after a refresh,
// and when the answer was invalidated while it was given.
func TestAnswersExpire(t *testing.T) {
	w := newFixture(t, hook.RelatedRule{APIVersion: "v1", Resource: "pages"})
	web := parent(t, "web", "1")
	asked := func(what string, want int) {
		t.Helper()
		if _, err := w.sync(web); err != nil {
			t.Fatal(err)
		}
		if w.asked != want {
			t.Errorf("%s: the customize hook was asked %d times, want %d", what, w.asked, want)
		}
	}
	asked("first", 1)
	w.clock.Step(DefaultMaxAge * 3 / 4)
	asked("before the answer can expire", 1)
	w.clock.Step(DefaultMaxAge / 4)
	asked("after it has expired", 2)
	w.Refresh(hook.ParentKey(web.Ref()))
	asked("after a refresh", 3)
	asked("the answer to that counts", 3)
	w.Refresh(hook.ParentKey(web.Ref()))
	w.during = func() { w.Invalidate(hook.ParentKey(web.Ref())) }
	asked("an answer that is invalidated while it is given", 4)
	w.during = nil
	asked("does not count for the next sync", 5)
	asked("the next one does", 5)
}

// TestRevisionsHaveAnswersOfTheirOwn asks once about each revision of a parent, and forgets those
// that are used no more.
func TestRevisionsHaveAnswersOfTheirOwn(t *testing.T) {
	w := newFixture(t, hook.RelatedRule{APIVersion: "v1", Resource: "pages"})
	latest := parent(t, "web", "2")
	older := func(spec string) *object.Object {
		o, err := object.Decode(
			[]byte(
				`{"apiVersion":"v1","kind":"Web","metadata":{"namespace":"shop","name":"web","uid":"u","generation":2},` +
					`"spec":` + spec + `}`,
			),
		)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	round := func(olders ...string) {
		t.Helper()
		w.shows(latest, "pages.v1 false")
		for _, spec := range olders {
			w.showsOlder(older(spec), "pages.v1 false")
		}
	}
	round(`"a"`, `"b"`)
	if w.asked != 3 {
		t.Errorf("the hook was asked %d times about three revisions, want 3", w.asked)
	}
	if got := w.Answers(); got != 3 {
		t.Errorf("%d answers are counted, want 3", got)
	}
	round(`"a"`, `"b"`)
	round(`"b"`)
	if w.asked != 3 {
		t.Errorf("the hook was asked %d times though nothing has changed, want 3", w.asked)
	}
	round()
	round()
	kept := w.parents[hook.ParentKey(latest.Ref())]
	if len(kept.earlier) != 0 || kept.latest == nil || w.Answers() != 1 {
		t.Errorf("%d answers about earlier revisions are kept, want none; the latest is %v", len(kept.earlier), kept.latest)
	}
}

// TestTrouble does not wait for a resource that the API server cannot list, and brings the
// parents back when it can.
func TestTrouble(t *testing.T) {
	w := newFixture(t, hook.RelatedRule{APIVersion: "v1", Resource: "pages"})
	w.server.Refuse(pages, http.StatusInternalServerError)
	w.server.Put(pages, page("shop", "a"))
	first := make(chan error)
	go func() {
		_, err := w.sync(parent(t, "first", "1"))
		first <- err
	}()
	w.eventually("the first waits", func() bool { return w.Cache.LastError(pages) != nil && w.clock.HasWaiters() })
	w.clock.Step(firstListTimeout)
	_, second := w.sync(parent(t, "second", "1"))
	for _, err := range []error{<-first, second} {
		if !apierrors.IsInternalError(err) ||
			!strings.Contains(err.Error(), "related resource: the objects of pages.v1 are not known yet") {
			t.Errorf("error %v", err)
		}
	}
	w.server.Refuse(pages, 0)
	w.awaitQueued("first", "second")
	w.shows(parent(t, "first", "1"), "pages.v1 false", "shop/a")
}

// TestWithoutGeneration asks again for every version of a parent if its resource has no
// generations.
func TestWithoutGeneration(t *testing.T) {
	w := newFixture(t)
	for _, version := range []string{"1", "1", "2"} {
		o, err := object.Decode(
			[]byte(
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"web","uid":"u",` +
					`"resourceVersion":"` + version + `"}}`,
			),
		)
		if err != nil {
			t.Fatal(err)
		}
		w.shows(o)
	}
	if w.asked != 2 {
		t.Errorf("the hook was asked %d times about two versions", w.asked)
	}
}
