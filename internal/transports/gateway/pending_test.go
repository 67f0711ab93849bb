package gateway

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

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

// TestPendingCalls makes room by the oldest call of the caller with the most.
func TestPendingCalls(t *testing.T) {
	p := newPending()
	add := func(user string, admitted bool) (gone func() bool, done func(), err error) {
		ctx, done, err := p.add(t.Context(), user, admitted)
		return func() bool { return ctx.Err() != nil }, done, err
	}
	var gone []func() bool
	for i := range maxPending {
		g, _, err := add(fmt.Sprint("stranger-", i/maxPendingPerUser), false)
		if err != nil {
			t.Fatal(err)
		}
		gone = append(gone, g)
	}
	if _, _, err := add("stranger-0", false); status.Code(err) != codes.ResourceExhausted ||
		!strings.Contains(err.Error(), `User "stranger-0" has 8 calls`) {
		t.Errorf("one more of a caller: %v", err)
	}
	_, done, err := add("laptop", false)
	if err != nil || !gone[0]() || gone[1]() || len(p.others) != maxPending {
		t.Errorf("another caller: %v, with %d calls; the oldest is ended: %t, the next: %t", err, len(p.others), gone[0](),
			gone[1]())
	}
	done()
	if len(p.others) != maxPending-1 {
		t.Errorf("%d calls wait, want the one less that is done", len(p.others))
	}
	p = newPending()
	for i := range maxPending {
		if _, _, err := add(fmt.Sprint("lone-", i), false); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := add("laptop", false); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("no caller has several calls: %v", err)
	}
	for range maxPendingOfAdmitted {
		if _, done, err = add("admitted", true); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := add("admitted", true); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("too many of an admitted caller: %v", err)
	}
	done()
	if _, _, err := add("admitted", true); err != nil {
		t.Errorf("an admitted caller: %v", err)
	}
}
