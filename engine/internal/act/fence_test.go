package act

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// lines is an API server behind a RoundTripper. It accepts every request, and hangs if a test sets
// so.
type lines struct {
	sent int
	hang bool
}

// RoundTrip answers with an object.
func (l *lines) RoundTrip(r *http.Request) (*http.Response, error) {
	l.sent++
	if l.hang {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"n"}}`
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(bytes.NewBufferString(body)),
		Request:    r,
	}, nil
}

// countedResults counts the results of writes.
type countedResults struct{ results []string }

func (h *countedResults) Wrote(_, result string) { h.results = append(h.results, result) }

var creation = plan.Action{
	Verb: plan.Create,
	Ref:  object.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "n", Name: "c"},
	Resource: object.Resource{
		GVK:        schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Plural:     "configmaps",
		Namespaced: true,
	},
	Body: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"name": "c", "namespace": "n"},
	},
}

// fencedFixture runs a test with a Writer behind a fence, on a clock that only moves when everything
// waits.
func fencedFixture(t *testing.T, qps float32, test func(t *testing.T, w *Writer, f *Fence, api *lines)) {
	synctest.Test(t, func(t *testing.T) {
		api := &lines{}
		fence := NewFence()
		w, err := NewWriter(Config{
			Config: &rest.Config{Host: "http://api", QPS: qps, Burst: 1, Transport: api},
			Tracer: noop.NewTracerProvider().Tracer(""), Meter: &countedResults{}, Clock: clock.RealClock{}, Fence: fence,
		})
		if err != nil {
			t.Fatal(err)
		}
		test(t, w, fence, api)
	})
}

// write does one write and reports whether it reached the API server.
func write(ctx context.Context, t *testing.T, w *Writer, api *lines) bool {
	t.Helper()
	before := api.sent
	_, err := w.Do(ctx, creation)
	if err != nil && !errors.Is(err, ErrFenced) {
		t.Errorf("the write fails with %v, want ErrFenced", err)
	}
	if sent := api.sent > before; sent == (err != nil) {
		t.Errorf("sent: %v, error: %v", sent, err)
	}
	return err == nil
}

func TestFenceIsOpenWhileTheGrantLasts(t *testing.T) {
	fencedFixture(t, -1, func(t *testing.T, w *Writer, f *Fence, api *lines) {
		if write(t.Context(), t, w, api) {
			t.Error("a write before the first grant")
		}
		f.Grant(1, time.Now().Add(10*time.Second))
		if !write(t.Context(), t, w, api) {
			t.Error("no write under the grant")
		}
		time.Sleep(9 * time.Second)
		f.Grant(1, time.Now().Add(10*time.Second))
		time.Sleep(9 * time.Second)
		if !write(t.Context(), t, w, api) {
			t.Error("no write under the extended grant")
		}
		time.Sleep(time.Second)
		if write(t.Context(), t, w, api) {
			t.Error("a write after the grant's time")
		}
		f.Grant(1, time.Now().Add(10*time.Second))
		f.Revoke()
		if write(t.Context(), t, w, api) {
			t.Error("a write after the grant was revoked")
		}
	})
}

func TestFenceCancelsWhatIsUnderWay(t *testing.T) {
	for name, end := range map[string]func(*Fence){
		"its time passes": func(*Fence) {},
		"it is revoked":   func(f *Fence) { f.Revoke() },
		"another epoch":   func(f *Fence) { f.Grant(2, time.Now().Add(time.Hour)) },
	} {
		t.Run(name, func(t *testing.T) {
			fencedFixture(t, -1, func(t *testing.T, w *Writer, f *Fence, api *lines) {
				f.Grant(1, time.Now().Add(10*time.Second))
				api.hang = true
				result := make(chan error, 1)
				go func() {
					_, err := w.Do(t.Context(), creation)
					result <- err
				}()
				synctest.Wait()
				end(f)
				if err := <-result; !errors.Is(err, ErrFenced) {
					t.Errorf("the write ends with %v, want ErrFenced", err)
				}
			})
		})
	}
}

// TestFenceIsAskedBeforeARequestIsSent: one that waited for the client's rate limit until the grant
// was over is not sent.
func TestFenceIsAskedBeforeARequestIsSent(t *testing.T) {
	fencedFixture(t, .05, func(t *testing.T, w *Writer, f *Fence, api *lines) {
		f.Grant(1, time.Now().Add(10*time.Second))
		if !write(t.Context(), t, w, api) {
			t.Fatal("no write under the grant")
		}
		if write(t.Context(), t, w, api) { // the rate limit holds it for 20 s
			t.Error("a write was sent after the grant's time")
		}
	})
}

// TestFenceKeepsEpochsApart: work that was begun under one epoch does not write under the next.
func TestFenceKeepsEpochsApart(t *testing.T) {
	fencedFixture(t, -1, func(t *testing.T, w *Writer, f *Fence, api *lines) {
		f.Grant(1, time.Now().Add(time.Hour))
		begun, end, err := f.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		if !write(begun, t, w, api) {
			t.Error("no write under the same epoch")
		}
		f.Grant(2, time.Now().Add(time.Hour))
		if write(begun, t, w, api) {
			t.Error("a write of epoch 1 under epoch 2")
		}
		if !write(t.Context(), t, w, api) {
			t.Error("no write of new work under epoch 2")
		}
		f.Revoke()
	})
}
