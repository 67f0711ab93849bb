package gateway

import (
	"context"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// A call is pending until we have checked its right, and may hold one message meanwhile.
	// maxPending limits pending calls of callers that were not admitted yet, maxPendingPerUser
	// those from one caller, and maxPendingOfAdmitted those from a caller that was admitted before.
	maxPending           = 32
	maxPendingPerUser    = 8
	maxPendingOfAdmitted = maxStreamsPerUser
)

// errDisplaced ends a call to make room for another caller.
var errDisplaced = status.Error(codes.ResourceExhausted,
	"too many calls wait for the check of their right; try again later")

// pending holds calls whose right was not checked yet. It is safe for concurrent use.
type pending struct {
	mu       sync.Mutex     // guards the fields below, and the fields of each call
	admitted map[string]int // how many calls each admitted caller makes
	others   []*pendingCall // calls of all other callers, oldest first
}

// pendingCall is a call whose right was not checked yet.
type pendingCall struct {
	of       *pending
	user     string
	admitted bool
	silent   bool                    // the first message has not arrived
	end      context.CancelCauseFunc // nil for an admitted caller
}

func newPending() *pending { return &pending{admitted: map[string]int{}} }

// add counts a call until done. If there are too many, it ends another call by its context, or
// returns an error.
func (p *pending) add(ctx context.Context, user string, admitted bool) (context.Context, *pendingCall, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	call := &pendingCall{of: p, user: user, admitted: admitted, silent: true}
	if admitted {
		if n := p.admitted[user]; n >= maxPendingOfAdmitted {
			return nil, nil, tooMany(user, n, maxPendingOfAdmitted)
		}
		p.admitted[user]++
		return ctx, call, nil
	}
	if n := count(p.others, user); n >= maxPendingPerUser {
		return nil, nil, tooMany(user, n, maxPendingPerUser)
	}
	if len(p.others) >= maxPending {
		other := p.victim()
		if other == nil {
			return nil, nil, errDisplaced
		}
		other.end(errDisplaced)
		p.remove(other)
	}
	ctx, call.end = context.WithCancelCause(ctx)
	p.others = append(p.others, call)
	return ctx, call, nil
}

func tooMany(user string, n, limit int) error {
	return status.Errorf(codes.ResourceExhausted,
		"User %q has %d calls that wait for the check of their right, expected at most %d", user, n, limit)
}

// victim chooses the call to end. It looks for the caller with the most silent calls and takes the
// oldest of them. If no call is silent, it takes the oldest call of the caller with the most calls.
// It returns nil if no caller has more than one, because that call's check will end soon. The
// caller must hold the lock.
func (p *pending) victim() *pendingCall {
	silent := slices.DeleteFunc(slices.Clone(p.others), func(c *pendingCall) bool { return !c.silent })
	if len(silent) > 0 {
		return oldestOfMost(silent)
	}
	if most := oldestOfMost(p.others); count(p.others, most.user) > 1 {
		return most
	}
	return nil
}

// oldestOfMost returns the oldest call of the caller with the most calls.
func oldestOfMost(calls []*pendingCall) *pendingCall {
	number := map[string]int{}
	most := ""
	for _, c := range calls {
		number[c.user]++
		if number[c.user] > number[most] {
			most = c.user
		}
	}
	return calls[slices.IndexFunc(calls, func(c *pendingCall) bool { return c.user == most })]
}

func count(calls []*pendingCall, user string) (n int) {
	for _, c := range calls {
		if c.user == user {
			n++
		}
	}
	return n
}

// remove removes a call whose caller was not admitted. The caller must hold the lock.
func (p *pending) remove(call *pendingCall) {
	p.others = slices.DeleteFunc(p.others, func(c *pendingCall) bool { return c == call })
}

// received notes that the first message has arrived.
func (c *pendingCall) received() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.silent = false
}

// done stops counting the call. Unless the caller is admitted, it also ends the call's context.
func (c *pendingCall) done() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if !c.admitted {
		c.of.remove(c)
		c.end(nil)
		return
	}
	c.of.admitted[c.user]--
	if c.of.admitted[c.user] == 0 {
		delete(c.of.admitted, c.user)
	}
}
