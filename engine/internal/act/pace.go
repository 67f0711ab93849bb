package act

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// most is the limit of a resource from which on it has none again.
	most = 256
	// cut is the part of the requests under way that may be under way after a refusal.
	cut = 0.5
)

// pace bounds the requests under way by the API server's answers: additive increase, multiplicative
// decrease, as TCP's congestion window (RFC 5681). A 429 (priority and fairness has no room for the
// request) halves the number, and each round of accepted requests adds one.
//
// Each resource has a limit of its own, and none before its first 429: if the requests of one
// resource hang (a webhook, an aggregated API server), those of the others are sent.
//
// Requests that wait are sent in the order of their arrival; one sync has at most Parallel of them.
// A refused request waits for its Retry-After in client-go, outside of the limit.
type pace struct {
	next http.RoundTripper
	// prefix comes before /api and /apis in the paths of requests.
	prefix string

	mu sync.Mutex // guards the fields below, and the windows
	// windows are never removed: there is one for each resource that is written.
	windows map[schema.GroupResource]*window
	refused int64
}

// window is the limit of a resource.
type window struct {
	// limit is the number of requests that may be under way. Invariant: 1 <= limit < most, or it is
	// infinite.
	limit float64
	busy  int
	// waiting are requests that wait, the next one first. Each is closed when it may be sent; busy
	// counts it then.
	waiting []chan struct{}
	// round counts the cuts. A request that began before the last one does not cut again: its refusal
	// is about the same crowd.
	round int64
}

// Pace is the state of the limits of requests under way, for metrics.
type Pace struct {
	// Limit is the lowest limit of a resource; infinite if no resource has one.
	Limit float64
	// Busy is the number of requests under way, and Refused that of those that the API server has
	// refused as too many.
	Busy    int
	Refused int64
}

// Pace returns the present state.
func (w *Writer) Pace() Pace {
	p := w.pace
	p.mu.Lock()
	defer p.mu.Unlock()
	state := Pace{Limit: math.Inf(1), Refused: p.refused}
	for _, w := range p.windows {
		state.Limit = min(state.Limit, math.Floor(w.limit))
		state.Busy += w.busy
	}
	return state
}

func newPace() *pace { return &pace{windows: map[schema.GroupResource]*window{}} }

// wrap returns the transport with the limits.
func (p *pace) wrap(next http.RoundTripper) http.RoundTripper {
	p.next = next
	return p
}

// WrappedRoundTripper returns the wrapped one, for client-go's dialer of idle connections.
func (p *pace) WrappedRoundTripper() http.RoundTripper { return p.next }

// RoundTrip sends the request when there is room for it.
func (p *pace) RoundTrip(r *http.Request) (*http.Response, error) {
	w := p.window(resourceOf(strings.TrimPrefix(r.URL.Path, p.prefix)))
	round, err := p.begin(r.Context(), w)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // nothing was read
		}
		return nil, err
	}
	response, err := p.next.RoundTrip(r)
	p.end(w, round, response)
	return response, err
}

// resourceOf returns the resource of a request's path: /api/VERSION/RESOURCE… or
// /apis/GROUP/VERSION/RESOURCE…, with namespaces/NAMESPACE before a namespaced RESOURCE. The
// subresources of a Namespace count as resources.
func resourceOf(path string) schema.GroupResource {
	next := func() (segment string) {
		segment, path, _ = strings.Cut(path, "/")
		return segment
	}
	group := ""
	next() // the path begins with a slash
	if next() == "apis" {
		group = next()
	}
	next() // the version
	resource := next()
	if resource == "namespaces" {
		next() // the name
		if namespaced := next(); namespaced != "" {
			resource = namespaced
		}
	}
	return schema.GroupResource{Group: group, Resource: resource}
}

// window returns the window of a resource.
func (p *pace) window(of schema.GroupResource) *window {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.windows[of]
	if w == nil {
		w = &window{limit: math.Inf(1)}
		of.Group, of.Resource = strings.Clone(of.Group), strings.Clone(of.Resource) // not the whole path
		p.windows[of] = w
	}
	return w
}

// hasRoom reports whether one more request may be under way.
func (w *window) hasRoom() bool { return float64(w.busy+1) <= w.limit }

// begin waits until a request may be sent, and returns its round.
func (p *pace) begin(ctx context.Context, w *window) (round int64, err error) {
	p.mu.Lock()
	if len(w.waiting) == 0 && w.hasRoom() {
		w.busy++
		defer p.mu.Unlock()
		return w.round, nil
	}
	ready := make(chan struct{})
	w.waiting = append(w.waiting, ready)
	p.mu.Unlock()
	select {
	case <-ready:
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		w.leave(ready)
	}
	return w.round, err
}

// leave takes a request out that no longer waits. The caller holds mu.
func (w *window) leave(ready chan struct{}) {
	if i := slices.Index(w.waiting, ready); i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
		return
	}
	w.busy-- // it was sent off at the same moment
	w.admit()
}

// end notes the answer to a request of a round. Without an answer the limit stays.
func (p *pace) end(w *window, round int64, response *http.Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case response == nil:
	case response.StatusCode != http.StatusTooManyRequests:
		w.limit += 1 / w.limit
		if w.limit >= most {
			w.limit = math.Inf(1)
		}
	default:
		p.refused++
		if round == w.round {
			w.limit = min(max(1, cut*float64(w.busy)), most-1)
			w.round++
		}
	}
	w.busy--
	w.admit()
}

// admit lets requests go that wait. The caller holds mu.
func (w *window) admit() {
	for len(w.waiting) > 0 && w.hasRoom() {
		close(w.waiting[0])
		w.waiting = w.waiting[1:]
		w.busy++
	}
}
