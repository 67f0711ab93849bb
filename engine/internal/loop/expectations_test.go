package loop_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// silent counts no writes.
type silent struct{}

func (silent) Wrote(string, string) {}

// writer writes to an API server that takes everything with the same answer, and shows nothing of
// it in the fixture's server: the test decides when that is.
func (w *fixture) writer(answer string) *act.Writer {
	w.t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(out, answer)
	}))
	w.t.Cleanup(api.Close)
	writer, err := act.NewWriter(act.Config{
		Config: &rest.Config{
			Host: api.URL,
			QPS:  -1,
		},
		Tracer: noop.NewTracerProvider().Tracer("test"),
		Meter:  silent{},
		Clock:  clock.RealClock{},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return writer
}

// TestReadYourOwnWrites has a reconciler that knows of no expectations write: it is not run again
// before the view shows the write, and then with everything that has come for it meanwhile.
func TestReadYourOwnWrites(t *testing.T) {
	later := thing(pages, "p", `,"resourceVersion":"1000"`)
	for name, test := range map[string]struct {
		action plan.Action
		// shown has the view show the write.
		shown func(*fixture)
	}{
		"a create": {
			plan.Action{Verb: plan.Create, Body: map[string]any{}}, func(w *fixture) { w.bookmark(1000) },
		},
		"an update": {
			plan.Action{Verb: plan.Update, Body: map[string]any{}}, func(w *fixture) { w.bookmark(1000) },
		},
		"a patch": {
			plan.Action{Verb: plan.PatchMetadata}, func(w *fixture) { w.bookmark(1000) },
		},
		"a delete": {
			plan.Action{Verb: plan.Delete, UID: "uid-p"}, func(w *fixture) { w.server.Delete(pages, "shop", "p") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, loop.Config{})
			w.server.Put(books, thing(books, "a", ""))
			w.server.Put(pages, thing(pages, "p", ""))
			w.For(books, mapper.Ref)
			w.Watch(pages, mapper.Owner(books, mapper.Ref))
			writer := w.writer(later)
			test.action.Resource = pages
			test.action.Ref = object.Ref{GVK: pages.GVK, Namespace: "shop", Name: "p"}
			written := false
			w.reconciles(func(ctx context.Context, _ queue.Item[object.Ref]) (loop.Result, error) {
				if written {
					return loop.Result{}, nil
				}
				written = true
				_, err := writer.Do(ctx, test.action)
				return loop.Result{}, err
			})
			w.run()
			w.next("a", queue.CauseInitial)
			for n := range 3 { // events that come before the write is shown
				w.server.Put(books, thing(books, "a", fmt.Sprintf(`,"labels":{"n":"%d"}`, n)))
			}
			w.server.Put(books, thing(books, "b", "")) // another key does not wait
			w.next("b", queue.CauseObject)
			if n := len(w.items); n > 0 {
				t.Fatalf("%d reconciles before the write is shown, want none", n)
			}
			test.shown(w)
			if item := w.next("a", queue.CauseObject); item.Count < 3 {
				t.Errorf("the reconcile has %d causes, want the events before the write was shown", item.Count)
			}
		})
	}
}

// waits is a loop that waits for the write of its first reconcile, which returns result. An event
// has come before the view has shown the write, and another one with it.
func waits(t *testing.T, fake *clocktesting.FakeClock, result loop.Result) *fixture {
	t.Helper()
	w := newFixture(t, loop.Config{Clock: fake})
	w.server.Put(books, thing(books, "a", ""))
	w.For(books, mapper.Ref)
	w.Watch(pages, mapper.Owner(books, mapper.Ref))
	writer := w.writer(thing(pages, "p", `,"resourceVersion":"1000"`))
	written := false
	w.reconciles(func(ctx context.Context, _ queue.Item[object.Ref]) (loop.Result, error) {
		if written {
			return loop.Result{}, nil
		}
		written = true
		_, err := writer.Do(ctx, plan.Action{
			Verb: plan.Create, Resource: pages, Ref: object.Ref{GVK: pages.GVK, Namespace: "shop", Name: "p"},
			Body: map[string]any{},
		})
		return result, err
	})
	w.run()
	w.next("a", queue.CauseInitial)
	w.server.Put(books, thing(books, "a", `,"labels":{"before":"it"}`))
	w.server.Put(books, thing(books, "b", "")) // comes behind it
	w.next("b", queue.CauseObject)
	w.server.Put(pages, thing(pages, "p", `,"ownerReferences":[{"apiVersion":"v1","kind":"Other","name":"o","uid":"o"}]`))
	w.bookmark(1000)
	return w
}

// TestCheckForOwnWritesIsNoCause: the check for own writes comes after an event has ended the wait.
// Nothing has changed since, so that nothing is reconciled.
func TestCheckForOwnWritesIsNoCause(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Now())
	w := waits(t, fake, loop.Result{})
	for n := 0; ; n++ { // until an event finds that the view has come to the bookmark
		w.server.Put(books, thing(books, "a", fmt.Sprintf(`,"labels":{"n":"%d"}`, n)))
		w.server.Put(books, thing(books, "b", fmt.Sprintf(`,"labels":{"n":"%d"}`, n)))
		if w.any().Key.Name == "a" {
			break
		}
	}
	for n := range 3 {
		fake.Step(200 * time.Millisecond)
		name := fmt.Sprint("later-", n)
		w.server.Put(books, thing(books, name, "")) // comes behind the check
		for item := w.any(); item.Key.Name != name; item = w.any() {
			for _, c := range item.Causes {
				if c.Kind != queue.CauseObject {
					t.Fatalf("%s is reconciled for %v, want events only", item.Key.Name, item.Causes)
				}
			}
		}
	}
}

// TestRequeueOutlastsAWait: the check for own writes does not replace the time after which the
// reconciler wants the key again.
func TestRequeueOutlastsAWait(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Now())
	begun := fake.Now()
	w := waits(t, fake, loop.Result{RequeueAfter: time.Minute})
	events := 0
	requeued := time.Time{}
	for requeued.IsZero() {
		select {
		case item := <-w.items:
			event := hasCause(item, queue.CauseObject)
			again := hasCause(item, queue.CauseRequeue)
			if !event && !again {
				t.Fatalf("reconcile for %v, want the event and then the requeue", item.Causes)
			}
			if event {
				events++
			}
			if again { // on a busy machine together with the event
				requeued = fake.Now()
			}
		case <-w.ctx.Done():
			t.Fatalf("no requeue, and %d events", events)
		case <-time.After(time.Millisecond):
			fake.Step(100 * time.Millisecond)
		}
	}
	if events != 1 || requeued.Sub(begun) < time.Minute {
		t.Errorf("%d events, and the requeue after %s; want one, and a minute", events, requeued.Sub(begun))
	}
}

func hasCause(item queue.Item[object.Ref], kind queue.CauseKind) bool {
	return slices.ContainsFunc(item.Causes, func(c queue.Cause) bool { return c.Kind == kind })
}

// bookmark has the server come to a version.
func (w *fixture) bookmark(version int) {
	for at := 0; at < version; {
		_, err := fmt.Sscan(w.server.Bookmark(pages), &at)
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestWritesThatNobodyReads are not waited for: their resource is not watched by the controller.
func TestWritesThatNobodyReads(t *testing.T) {
	w := newFixture(t, loop.Config{})
	w.server.Put(books, thing(books, "a", ""))
	w.For(books, mapper.Ref)
	writer := w.writer(thing(films, "f", `,"resourceVersion":"1000"`))
	w.reconciles(func(ctx context.Context, _ queue.Item[object.Ref]) (loop.Result, error) {
		_, err := writer.Do(ctx, plan.Action{
			Verb:     plan.Create,
			Resource: films,
			Ref:      object.Ref{GVK: films.GVK, Namespace: "shop", Name: "f"},
			Body:     map[string]any{},
		})
		return loop.Result{}, err
	})
	w.run()
	w.next("a", queue.CauseInitial)
	w.server.Put(books, thing(books, "a", `,"labels":{"a":"b"}`))
	w.next("a", queue.CauseObject)
}

// TestWriteThatIsNeverShown is waited for for 30 seconds: its watch has stalled.
func TestWriteThatIsNeverShown(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Now())
	w := newFixture(t, loop.Config{Clock: fake})
	w.server.Put(books, thing(books, "a", ""))
	w.For(books, mapper.Ref)
	writer := w.writer(thing(books, "a", `,"resourceVersion":"1000"`))
	w.reconciles(func(ctx context.Context, _ queue.Item[object.Ref]) (loop.Result, error) {
		_, err := writer.Do(ctx, plan.Action{
			Verb: plan.PatchMetadata, Resource: books, Ref: object.Ref{GVK: books.GVK, Namespace: "shop", Name: "a"},
		})
		return loop.Result{}, err
	})
	w.run()
	w.next("a", queue.CauseInitial)
	w.server.Put(books, thing(books, "a", `,"labels":{"a":"b"}`))
	for passed := time.Duration(0); ; passed += 100 * time.Millisecond {
		select {
		case item := <-w.items:
			if passed < 30*time.Second || item.Causes[0].Kind != queue.CauseObject {
				t.Errorf("the key is reconciled after %s for %v, want 30 s, and the event", passed, item.Causes)
			}
			return
		case <-w.ctx.Done():
			t.Fatal("the key is not reconciled any more")
		case <-time.After(time.Millisecond):
			fake.Step(100 * time.Millisecond)
		}
	}
}
