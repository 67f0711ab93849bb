package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestCallersWithoutARightLeaveRoom opens as many streams as four callers may have. They send
// nothing, or wait for the check of their right. A hook with the right attaches meanwhile.
func TestCallersWithoutARightLeaveRoom(t *testing.T) {
	for name, attach := range map[string]bool{"without attach": false, "without an answer": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestGateway(t)
				h.guard.unanswered = func(user string) bool { return user != "laptop" }
				ended := make(chan *status.Status, 4*maxStreamsPerUser)
				for i := range cap(ended) {
					g := h.dial(fmt.Sprintf("stranger-%d", i%4))
					go func() {
						if attach {
							g.send(attaching(serves("hello")))
						}
						ended <- g.end()
					}()
				}
				synctest.Wait()
				if got := len(ended); got != cap(ended)-maxPending {
					t.Errorf("%d streams are refused, want all but %d", got, maxPending)
				}
				if h.attach("laptop", serves("hello")).session == "" {
					t.Error("the hook is not attached")
				}
				for len(ended) > 0 {
					if end := <-ended; end.Code() != codes.ResourceExhausted {
						t.Errorf("a stream ended with %v", end)
					}
				}
			})
		})
	}
}

// TestLoneCallersWithoutARightLeaveRoom opens one stream for each of many callers, which send
// nothing. A hook with the right attaches meanwhile.
func TestLoneCallersWithoutARightLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		ended := make(chan *status.Status, 2*maxPending)
		for i := range cap(ended) {
			g := h.dial(fmt.Sprintf("stranger-%d", i))
			go func() { ended <- g.end() }()
		}
		synctest.Wait()
		if h.attach("laptop", serves("hello")).session == "" {
			t.Error("the hook is not attached")
		}
	})
}

// standing tells whether the gateway knows a caller.
type standing bool

const (
	newcomer standing = false
	admitted standing = true
)

// pendingFixture holds calls whose right is not checked yet.
type pendingFixture struct {
	*testing.T
	*pending
	ended []string // names of the calls that made room, in order
}

// call adds a call. It returns nil, and the error, if the call is refused.
func (w *pendingFixture) call(name, user string, of standing) (*pendingCall, error) {
	ctx, call, err := w.add(w.Context(), user, bool(of))
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), errDisplaced) {
			w.ended = append(w.ended, name)
		}
	})
	return call, nil
}

// fill adds as many calls as there may be. The callers have some calls each.
func (w *pendingFixture) fill(each int) (calls []*pendingCall) {
	w.Helper()
	for i := range maxPending {
		call, err := w.call(fmt.Sprint("call-", i), fmt.Sprint("caller-", i/each), newcomer)
		if err != nil {
			w.Fatal(err)
		}
		calls = append(calls, call)
	}
	return calls
}

// TestPendingCalls makes room for a call of another caller.
func TestPendingCalls(t *testing.T) {
	all := func(int) bool { return true }
	for name, c := range map[string]struct {
		each     int            // calls of each caller
		received func(int) bool // reports whether the first message of a call has come
		want     []string       // the calls that make room
	}{
		"the callers have several":         {maxPendingPerUser, all, []string{"call-0"}},
		"the callers have one":             {1, all, nil},
		"no caller has sent a message":     {1, func(int) bool { return false }, []string{"call-0"}},
		"some callers have sent a message": {1, func(i int) bool { return i < 5 || i > 7 }, []string{"call-5"}},
		"one caller has sent nothing, and another one has several": {
			maxPendingPerUser, func(i int) bool { return i != 20 }, []string{"call-20"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &pendingFixture{T: t, pending: newPending()}
				for i, call := range w.fill(c.each) {
					if c.received(i) {
						call.received()
					}
				}
				call, err := w.call("new", "laptop", newcomer)
				synctest.Wait()
				if diff := cmp.Diff(c.want, w.ended); diff != "" {
					t.Errorf("calls that make room (-want +got):\n%s", diff)
				}
				switch refused := status.Code(err) == codes.ResourceExhausted; {
				case refused != (c.want == nil) || len(w.others) != maxPending:
					t.Errorf("the call of another caller: %v, with %d calls", err, len(w.others))
				case !refused:
					call.done()
				}
				if want := maxPending - len(c.want); len(w.others) != want {
					t.Errorf("%d calls wait at last, want %d", len(w.others), want)
				}
			})
		})
	}
}

// TestPendingCallsOfACaller are few, and more if the caller is admitted.
func TestPendingCallsOfACaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for of, most := range map[standing]int{newcomer: maxPendingPerUser, admitted: maxPendingOfAdmitted} {
			w := &pendingFixture{T: t, pending: newPending()}
			var last *pendingCall
			for range most {
				call, err := w.call("", "laptop", of)
				if err != nil {
					t.Fatal(err)
				}
				last = call
			}
			if _, err := w.call("", "laptop", of); status.Code(err) != codes.ResourceExhausted ||
				!strings.Contains(err.Error(), fmt.Sprintf(`User "laptop" has %d calls`, most)) {
				t.Errorf("one more than %d: %v", most, err)
			}
			last.done()
			if _, err := w.call("", "laptop", of); err != nil {
				t.Errorf("after one of %d: %v", most, err)
			}
		}
	})
}
