package loop_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/cachetest"
	"github.com/hookloop/hookloop/engine/object"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	books = object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Book"}, Plural: "books", Namespaced: true}
	films = object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Film"}, Plural: "films", Namespaced: true}
	pages = object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Page"}, Plural: "pages", Namespaced: true}
)

func thing(r object.Resource, name, more string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"namespace":"shop","name":%q,"uid":"uid-%s"%s}}`,
		r.GVK.Kind, name, name, more)
}

const ownedByA = `,"ownerReferences":[{"apiVersion":"v1","kind":"Book","name":"a","uid":"uid-a","controller":true}]`

// fixture is a controller under test, on a real cache of a server that the test plays.
type fixture struct {
	t      *testing.T
	server *cachetest.Server
	*loop.Loop[object.Ref]
	// items are the reconciles that were begun.
	items chan queue.Item[object.Ref]
	ctx   context.Context //nolint:containedctx // of the test
}

func newFixture(t *testing.T, s loop.Config) *fixture {
	t.Helper()
	return newFixtureWith(t, s, cache.Config{})
}

func newFixtureWith(t *testing.T, s loop.Config, of cache.Config) *fixture {
	t.Helper()
	server := cachetest.New(t)
	of.Config = server.Config()
	c, err := cache.New(of)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	s.Cache = c
	if s.Clock == nil {
		s.Clock = clock.RealClock{}
	}
	return &fixture{
		t:      t,
		server: server,
		Loop:   loop.New[object.Ref]("test", s),
		items:  make(chan queue.Item[object.Ref], 1000),
		ctx:    ctx,
	}
}

// reconciles has every reconcile noted and answered by f; nil answers nothing.
func (w *fixture) reconciles(f func(context.Context, queue.Item[object.Ref]) (loop.Result, error)) {
	w.Reconcile(loop.Func[object.Ref](func(ctx context.Context, item queue.Item[object.Ref]) (
		loop.Result, error,
	) {
		w.items <- item
		if f == nil {
			return loop.Result{}, nil
		}
		return f(ctx, item)
	}))
}

// run runs the controller until stop is called, which returns Run's result.
func (w *fixture) run() (stop func() error) {
	ctx, cancel := context.WithCancel(w.ctx)
	result := make(chan error, 1)
	go func() { result <- w.Run(ctx) }()
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() {
			cancel()
			err = <-result
		})
		return err
	}
	w.t.Cleanup(func() {
		if err := stop(); err != nil {
			w.t.Errorf("Run = %v", err)
		}
	})
	return stop
}

// next waits for the next reconcile, which must be of a name with a kind of cause.
func (w *fixture) next(name string, cause queue.CauseKind) queue.Item[object.Ref] {
	w.t.Helper()
	select {
	case item := <-w.items:
		if got := item.Key.Name; got != name || item.Causes[0].Kind != cause {
			w.t.Fatalf("reconcile of %s for %v, want %s for %v", got, item.Causes, name, cause)
		}
		return item
	case <-w.ctx.Done():
		w.t.Fatalf("no reconcile of %s for %v", name, cause)
		panic("unreachable")
	}
}

// any waits for the next reconcile.
func (w *fixture) any() queue.Item[object.Ref] {
	w.t.Helper()
	select {
	case item := <-w.items:
		return item
	case <-w.ctx.Done():
		w.t.Fatal("no reconcile")
		panic("unreachable")
	}
}

func TestWhatBringsAReconcile(t *testing.T) {
	w := newFixture(t, loop.Config{})
	w.server.Put(books, thing(books, "a", ""))
	w.server.Put(pages, thing(pages, "p", ownedByA))
	unlabelled := func(e cache.Event) bool { return e.New == nil || len(e.New.Labels()) == 0 }
	w.For(books, mapper.Ref, unlabelled)
	w.For(films, mapper.Ref)
	w.Watch(pages, mapper.Owner(books, mapper.Ref))
	w.reconciles(nil)
	w.run()
	w.next("a", queue.CauseInitial) // once: the page was there before, too

	w.server.Put(films, thing(films, "f", ""))
	w.next("f", queue.CauseObject)
	w.server.Put(pages, thing(pages, "q", ownedByA))
	w.next("a", queue.CauseChild)
	w.server.Put(books, thing(books, "b", `,"labels":{"not":"this"}`))
	w.server.Put(pages, thing(pages, "r", ""))
	w.server.Delete(pages, "shop", "q")
	w.next("a", queue.CauseChild)
	w.server.Delete(books, "shop", "b")
	w.next("b", queue.CauseObject)
}

// TestInitializerAndSource run once the caches are filled, before anything is reconciled.
func TestInitializerAndSource(t *testing.T) {
	w := newFixture(t, loop.Config{})
	w.server.Put(books, thing(books, "a", ""))
	w.For(books, mapper.Ref)
	initialized := false
	w.Initialize(func(_ context.Context, r loop.Runtime[object.Ref]) error {
		v, err := r.Reader().View(books)
		initialized = err == nil && v.Get("shop", "a") != nil
		return err
	})
	times := 0
	w.Source(func(ctx context.Context, enqueue loop.Enqueue[object.Ref]) error {
		times++
		key := object.Ref{GVK: books.GVK, Namespace: "shop", Name: fmt.Sprint("source", times)}
		enqueue(key, queue.Child, queue.Cause{Kind: queue.CauseTrigger})
		if times == 1 {
			return errors.New("the source is broken")
		}
		<-ctx.Done()
		return nil
	})
	w.reconciles(func(context.Context, queue.Item[object.Ref]) (loop.Result, error) {
		if !initialized {
			t.Error("a reconcile came before the initializer, or it saw an empty cache")
		}
		return loop.Result{}, nil
	})
	w.run()
	seen := map[string]bool{}
	for range 3 {
		seen[(<-w.items).Key.Name] = true
	}
	if len(seen) != 3 || !seen["a"] || !seen["source1"] || !seen["source2"] {
		t.Errorf("reconciled are %v, want a, source1 and, started again, source2", seen)
	}
}

func TestRunFails(t *testing.T) {
	w := newFixture(t, loop.Config{})
	w.reconciles(nil)
	if err := w.Run(w.ctx); err == nil {
		t.Error("Run without a watched type succeeds")
	}
	w.For(books, mapper.Ref)
	w.server.Refuse(books, 403)
	var unwatchable *cache.UnwatchableError
	if err := w.Run(w.ctx); !errors.As(err, &unwatchable) || unwatchable.Resource != books {
		t.Errorf("Run = %v, want an UnwatchableError of books", err)
	}
	w.server.Refuse(books, 0)
	w.Initialize(func(context.Context, loop.Runtime[object.Ref]) error { return errors.New("no luck") })
	if err := w.Run(w.ctx); err == nil || err.Error() != "controller test: initializer: no luck" {
		t.Errorf("Run = %v, want the initializer's error", err)
	}
}

// TestPanics in a mapper and in a reconcile end neither the process nor the controller.
func TestPanics(t *testing.T) {
	w := newFixture(t, loop.Config{})
	w.For(books, mapper.Ref)
	w.Watch(pages, func(_, current *object.Object) []object.Ref {
		if current.Name() == "bad" {
			panic("mapper")
		}
		return []object.Ref{{GVK: books.GVK, Namespace: "shop", Name: "mapped"}}
	})
	w.reconciles(func(_ context.Context, item queue.Item[object.Ref]) (loop.Result, error) {
		if item.Key.Name == "mapped" && item.Attempt == 0 {
			panic("reconcile")
		}
		return loop.Result{}, nil
	})
	w.server.Put(books, thing(books, "a", ""))
	w.run()
	w.next("a", queue.CauseInitial)
	w.server.Put(pages, thing(pages, "bad", ""))
	w.server.Put(pages, thing(pages, "good", ""))
	w.next("mapped", queue.CauseChild)
	w.next("mapped", queue.CauseRetry)
}

func TestResults(t *testing.T) {
	w := newFixture(t, loop.Config{})
	w.server.Put(books, thing(books, "a", ""))
	w.For(books, mapper.Ref)
	answers := []struct {
		result loop.Result
		err    error
	}{
		{err: errors.New("first try")},
		{result: loop.Result{Skipped: true, RequeueAfter: time.Millisecond}},
		{err: errors.New("the row goes on")},
		{result: loop.Result{RequeueAfter: time.Millisecond}},
		{},
	}
	turn := 0
	w.reconciles(func(context.Context, queue.Item[object.Ref]) (loop.Result, error) {
		turn++
		return answers[turn-1].result, answers[turn-1].err
	})
	w.run()
	for i, want := range []struct {
		cause   queue.CauseKind
		attempt int
	}{{queue.CauseInitial, 0}, {queue.CauseRetry, 1}, {queue.CauseRequeue, 1},
		{queue.CauseRetry, 2}, {queue.CauseRequeue, 0}} {
		if item := w.next("a", want.cause); item.Attempt != want.attempt {
			t.Errorf("reconcile %d is attempt %d, want %d", i, item.Attempt, want.attempt)
		}
	}
}

func TestResync(t *testing.T) {
	w := newFixture(t, loop.Config{ResyncPeriod: time.Millisecond})
	w.server.Put(books, thing(books, "a", ""))
	w.server.Put(books, thing(books, "b", `,"labels":{"not":"this"}`))
	w.For(books, mapper.Ref, func(e cache.Event) bool { return len(e.New.Labels()) == 0 })
	w.reconciles(nil)
	w.run()
	w.next("a", queue.CauseInitial)
	for range 3 {
		w.next("a", queue.CauseResync)
	}
}

// TestStop waits for the running reconcile, takes no new one, and cancels it when the grace
// period is over.
func TestStop(t *testing.T) {
	for name, grace := range map[string]time.Duration{"within the grace period": time.Hour,
		"after the grace period": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, loop.Config{GracePeriod: grace})
			w.server.Put(books, thing(books, "a", ""))
			w.For(books, mapper.Ref)
			begun := make(chan struct{})
			finish := make(chan struct{})
			cancelled := false
			w.reconciles(func(ctx context.Context, _ queue.Item[object.Ref]) (loop.Result, error) {
				close(begun)
				select {
				case <-finish:
				case <-ctx.Done():
					cancelled = true
				}
				return loop.Result{}, nil
			})
			stop := w.run()
			<-begun
			w.server.Put(books, thing(books, "b", ""))
			if grace == time.Hour {
				time.AfterFunc(10*time.Millisecond, func() { close(finish) })
			}
			if err := stop(); err != nil {
				t.Errorf("Run = %v", err)
			}
			if want := grace != time.Hour; cancelled != want {
				t.Errorf("the reconcile was cancelled: %v, want %v", cancelled, want)
			}
			if n := len(w.items); n != 1 {
				t.Errorf("%d reconciles were begun, want 1", n)
			}
		})
	}
}

// TestStopNow cancels the running reconcile although there is a grace period.
func TestStopNow(t *testing.T) {
	w := newFixture(t, loop.Config{GracePeriod: time.Hour})
	w.server.Put(books, thing(books, "a", ""))
	w.For(books, mapper.Ref)
	begun := make(chan struct{})
	w.reconciles(func(ctx context.Context, _ queue.Item[object.Ref]) (loop.Result, error) {
		close(begun)
		<-ctx.Done()
		return loop.Result{}, nil
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	<-begun
	cancel(fmt.Errorf("lost: %w", loop.ErrStopNow))
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
}
