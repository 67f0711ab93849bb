package act

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	urlpath "path"
	"strings"
	"sync"
	"sync/atomic"
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

var (
	accepted = &http.Response{StatusCode: http.StatusOK}
	tooMany  = &http.Response{StatusCode: http.StatusTooManyRequests}
)

// newWindow returns a pace with the window of one resource.
func newWindow() (*pace, *window) {
	p := newPace()
	return p, p.window(pages.GVR().GroupResource())
}

// begins sends n requests off together, and returns their rounds.
func begins(t *testing.T, p *pace, w *window, n int) []int64 {
	t.Helper()
	var rounds []int64
	for range n {
		round, err := p.begin(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		rounds = append(rounds, round)
	}
	return rounds
}

// TestRefusalsHalveThePace: a 429 halves the number of requests under way, once for all that were
// under way together, and not below one. Each round of accepted requests adds one.
func TestRefusalsHalveThePace(t *testing.T) {
	p, w := newWindow()
	crowd := begins(t, p, w, 40)
	for _, round := range crowd[:10] {
		p.end(w, round, tooMany)
	}
	if w.limit != 20 || p.refused != 10 || w.busy != 30 {
		t.Fatalf("limit %v after %d refusals with %d under way, want 20, 10 and 30", w.limit, p.refused, w.busy)
	}
	for _, round := range crowd[10:] {
		p.end(w, round, nil) // no answer
	}
	if w.limit != 20 || w.busy != 0 {
		t.Fatalf("limit %v with %d under way, want 20 and none", w.limit, w.busy)
	}
	for range 20 {
		p.end(w, begins(t, p, w, 1)[0], accepted)
	}
	if w.limit < 20.9 || w.limit > 21 {
		t.Errorf("limit %v after a round of accepted requests, want one more", w.limit)
	}
	for range 8 {
		p.end(w, begins(t, p, w, 1)[0], tooMany)
	}
	if w.limit != 1 {
		t.Errorf("limit %v, want 1 at least", w.limit)
	}
	for range 100_000 {
		p.end(w, begins(t, p, w, 1)[0], accepted)
	}
	if !math.IsInf(w.limit, 1) {
		t.Errorf("limit %v after many accepted requests, want none", w.limit)
	}
}

// TestPaceKeepsTheOrder: requests that wait are sent in the order of their arrival. One that is
// cancelled leaves its place, also at the moment at which it is sent.
func TestPaceKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, w := newWindow()
		w.limit = 1
		w.busy = 1
		var mu sync.Mutex // guards sent
		var sent []int
		cancelled, cancel := context.WithCancel(t.Context())
		for i := range 4 {
			ctx := t.Context()
			if i == 1 {
				ctx = cancelled
			}
			go func() { // the test → the limit; ends when its request has been sent
				round, err := p.begin(ctx, w)
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				sent = append(sent, i)
				mu.Unlock()
				p.end(w, round, nil) // the limit stays
			}()
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
		p.end(w, 0, nil)
		synctest.Wait()
		if got := fmt.Sprint(sent); got != "[0 2 3]" || w.busy != 0 || len(w.waiting) != 0 {
			t.Errorf("sent %s, %d under way, %d waiting; want [0 2 3], none and none", got, w.busy, len(w.waiting))
		}
		ready := make(chan struct{})
		w.busy = 1 // it was sent off when it was cancelled
		w.leave(ready)
		if w.busy != 0 {
			t.Errorf("%d under way, want none", w.busy)
		}
	})
}

// crowded is an API server that refuses requests as too many while more than room are under way.
type crowded struct {
	room int
	mu   sync.Mutex // guards the fields below
	// most is the largest number of requests that were under way together.
	busy, most, refused, accepted int
	// full is closed when all of the first crowd are there.
	full chan struct{}
}

func (c *crowded) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	c.busy++
	c.most = max(c.most, c.busy)
	if c.busy == Parallel && c.refused+c.accepted == 0 {
		close(c.full)
	}
	c.mu.Unlock()
	<-c.full
	c.mu.Lock()
	tooMany := c.busy > c.room
	if tooMany {
		c.refused++
	} else {
		c.accepted++
	}
	c.busy--
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if tooMany {
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Page","metadata":{"name":"a","namespace":"shop"}}`))
}

// TestManyWritesBackOff: a sync has Parallel writes under way. If the API server refuses some as
// too many, there are fewer, and all writes succeed in the end.
func TestManyWritesBackOff(t *testing.T) {
	c := &crowded{room: Parallel / 2, full: make(chan struct{})}
	web := httptest.NewServer(c)
	defer web.Close()
	w, err := NewWriter(Config{
		Config: &rest.Config{Host: web.URL, QPS: -1}, Tracer: noop.NewTracerProvider().Tracer(""), Meter: &server{},
		Clock: clock.RealClock{},
	})
	if err != nil {
		t.Fatal(err)
	}
	var actions []plan.Action
	for i := range 4 * Parallel {
		actions = append(actions, action(plan.Create, fmt.Sprint("new", i)))
	}
	for i, o := range w.All(t.Context(), actions) {
		if o.Err != nil || o.Action.Ref != actions[i].Ref {
			t.Errorf("outcome %d is %+v", i, o)
		}
	}
	state := w.Pace()
	if c.most != Parallel || c.accepted != len(actions) || state.Refused != int64(c.refused) || c.refused == 0 {
		t.Errorf("%d at a time, %d accepted, %d refused, counted %+v; want %d, %d, and as many as counted",
			c.most, c.accepted, c.refused, state, Parallel, len(actions))
	}
	if state.Limit >= most || state.Limit < 1 || state.Busy != 0 {
		t.Errorf("the limit is %+v, want one below %d, and nothing under way", state, most)
	}
}

// TestHungResource: the requests of one resource hang, more than there may be after a refusal.
// Those of another resource are sent.
func TestHungResource(t *testing.T) {
	const hung = 5 * Parallel // as many as the workers of one controller send
	var arrived atomic.Int64
	all := make(chan struct{})
	release := make(chan struct{})
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("a request of %s", r.Proto)
		}
		if strings.Contains(r.URL.Path, "/pages") {
			if arrived.Add(1) == hung {
				close(all)
			}
			<-release
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Page","metadata":{"name":"a","namespace":"shop"}}`))
	}))
	web.EnableHTTP2 = true // a connection has fewer streams than there are requests
	web.StartTLS()
	defer web.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	w, err := NewWriter(Config{
		Config: &rest.Config{Host: web.URL + "/k8s", QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: ca}},
		Tracer: noop.NewTracerProvider().Tracer(""), Meter: &server{}, Clock: clock.RealClock{},
	})
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	defer wait.Wait()
	defer close(release)
	for range hung {
		wait.Go(func() { // the test → the API server; ends when that is released
			if _, err := w.Get(t.Context(), pages, object.Ref{Namespace: "shop", Name: "a"}); err != nil {
				t.Error(err)
			}
		})
	}
	select {
	case <-all:
	case <-time.After(time.Minute):
		t.Fatalf("%d requests of the resource are under way, want all %d", arrived.Load(), hung)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := w.Get(ctx, webs, object.Ref{Namespace: "shop", Name: "a"}); err != nil {
		t.Errorf("another resource: %v", err)
	}
}

// TestResourceOf: the resource of a request is found in its path, whatever its namespace and name.
func TestResourceOf(t *testing.T) {
	namespaces := object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Plural: "namespaces"}
	for _, r := range []object.Resource{pages, webs, sites, namespaces} {
		for _, name := range []string{"", "a", "apis", "namespaces"} {
			segments := path(r, "namespaces", name)
			if got := resourceOf(urlpath.Join(segments...)).String(); got != r.GroupResource() {
				t.Errorf("%s is of %s, want %s", segments, got, r.GroupResource())
			}
			if name == "" || r.Plural == namespaces.Plural {
				continue
			}
			if got := resourceOf(urlpath.Join(append(segments, "status")...)).String(); got != r.GroupResource() {
				t.Errorf("the status of %s is of %s, want %s", segments, got, r.GroupResource())
			}
		}
	}
	for _, odd := range []string{"", "/", "/apis", "api", "//", "/apis/x/v1"} {
		if got := resourceOf(odd); got.Resource != "" {
			t.Errorf("%q is of %s, want none", odd, got)
		}
	}
}
