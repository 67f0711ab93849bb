package gateway

import (
	"context"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// maxPending bounds the calls of all callers that have passed no check of a right yet,
	// maxPendingPerUser those of one caller, and maxPendingOfAdmitted those of one that has. Each
	// may hold one message.
	maxPending           = 32
	maxPendingPerUser    = 8
	maxPendingOfAdmitted = maxStreamsPerUser
)

// errDisplaced ends a call that makes room for another caller.
var errDisplaced = status.Error(codes.ResourceExhausted,
	"too many calls wait for the check of their right; try again later")

// pending is the calls before the check of the right that they need. It is safe for concurrent use.
type pending struct {
	mu       sync.Mutex     // guards the fields below
	admitted map[string]int // calls of admitted callers, by name
	others   []*pendingCall // of all other callers, oldest first
}

// pendingCall is a call of a caller that is not admitted.
type pendingCall struct {
	user string
	end  context.CancelCauseFunc
}

func newPending() *pending { return &pending{admitted: map[string]int{}} }

// add counts a call until done. If there are too many, it ends the oldest call of the caller with
// the most, which ctx reports, or returns an error if no caller has several.
func (p *pending) add(ctx context.Context, user string, admitted bool) (_ context.Context, done func(), err error) {
	if admitted {
		done, err = p.addAdmitted(user)
		return ctx, done, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	count, most := map[string]int{}, ""
	for _, c := range p.others {
		if count[c.user]++; count[c.user] > count[most] {
			most = c.user
		}
	}
	switch {
	case count[user] >= maxPendingPerUser:
		return nil, nil, status.Errorf(codes.ResourceExhausted,
			"User %q has %d calls that wait for the check of their right, expected at most %d", user, count[user],
			maxPendingPerUser)
	case len(p.others) >= maxPending && count[most] < 2:
		return nil, nil, errDisplaced
	case len(p.others) >= maxPending:
		at := slices.IndexFunc(p.others, func(c *pendingCall) bool { return c.user == most })
		p.others[at].end(errDisplaced)
		p.others = slices.Delete(p.others, at, at+1)
	}
	ctx, end := context.WithCancelCause(ctx)
	call := &pendingCall{user, end}
	p.others = append(p.others, call)
	return ctx, func() {
		p.mu.Lock()
		p.others = slices.DeleteFunc(p.others, func(c *pendingCall) bool { return c == call })
		p.mu.Unlock()
		end(nil)
	}, nil
}

func (p *pending) addAdmitted(user string) (done func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.admitted[user]; n >= maxPendingOfAdmitted {
		return nil, status.Errorf(codes.ResourceExhausted,
			"User %q has %d calls that wait for the check of their right, expected at most %d", user, n, maxPendingOfAdmitted)
	}
	p.admitted[user]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.admitted[user]--; p.admitted[user] == 0 {
			delete(p.admitted, user)
		}
	}, nil
}
