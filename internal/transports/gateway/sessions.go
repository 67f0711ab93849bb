package gateway

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/hookloop/hookloop/internal/transports/stream"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"
)

const (
	// maxKept bounds the sessions that are kept for hooks that may come back, and maxKeptOfOne
	// those of one owner.
	maxKept      = 256
	maxKeptOfOne = 4
	// keptFor is how long a session is kept.
	keptFor = 10 * time.Minute
	// handover is how long a stream may take to end when its hook has opened another.
	handover = 5 * time.Second
)

// owner is whose a session is, so that nobody else finds it: what was attached to, a worker's name
// or a claim, and the caller's name.
type owner struct {
	what any // a string or a claim
	user string
}

// ticket is what a hook shows to have its session back.
type ticket struct {
	owner owner
	id    string
}

// attached is a session with a stream.
type attached struct {
	session *stream.Session
	left    chan struct{} // closed when it has no stream any more
}

// parked is a session without a stream.
type parked struct {
	ticket  ticket
	session *stream.Session
	expiry  clock.Timer
}

// errElsewhere ends a stream whose hook has come back on another, because its own end has lost it.
var errElsewhere = status.New(codes.Aborted, "the hook has opened the session on another stream")

// takeOver ends the stream that a hook's session is still on, and waits until it is off it. Where
// that takes too long, the hook gets another session.
func (g *Gateway) takeOver(ctx context.Context, t ticket) {
	g.mu.Lock()
	before := g.attached[t]
	g.mu.Unlock()
	if before == nil {
		return
	}
	go before.session.End(errElsewhere) // it returns when that stream has ended
	timer := g.settings.Clock.NewTimer(handover)
	defer timer.Stop()
	select {
	case <-before.left:
	case <-timer.C():
	case <-ctx.Done():
	}
}

// resume finds the session that a hook comes back to, or makes one. leave must be called when it
// has no stream any more.
func (g *Gateway) resume(t ticket) (s *stream.Session, leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.IndexFunc(g.kept, func(p *parked) bool { return p.ticket == t })
	if at >= 0 {
		s = g.take(at)
	} else {
		s = stream.New(
			stream.Settings{
				ID:      rand.Text(),
				Build:   g.settings.Build,
				Clock:   g.settings.Clock,
				Metrics: g.settings.Metrics,
				Memory:  g.settings.Memory,
			},
		)
	}
	t.id = s.ID()
	now := &attached{s, make(chan struct{})}
	g.attached[t] = now
	return s, func() {
		g.park(t, s)
		close(now.left)
	}
}

// park keeps a session for a hook that may come back, if one was ever there.
func (g *Gateway) park(t ticket, s *stream.Session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.attached, t)
	if !s.Welcomed() {
		s.Close()
		return
	}
	p := &parked{ticket: t, session: s}
	p.expiry = g.settings.Clock.AfterFunc(keptFor, func() { g.expire(p) })
	g.kept = append(g.kept, p)
	if oldest, n := g.oldest(func(o owner) bool { return o == t.owner }); n > maxKeptOfOne {
		g.forget(oldest)
	}
	if len(g.kept) > maxKept {
		g.forget(g.surplus())
	}
}

// expire forgets a session that nobody came back to.
func (g *Gateway) expire(p *parked) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at := slices.Index(g.kept, p); at >= 0 {
		g.forget(at)
	}
}

// forget drops a session that is kept. The caller holds the lock.
func (g *Gateway) forget(at int) { g.take(at).Close() }

// take takes a session out of those that are kept. The caller holds the lock.
func (g *Gateway) take(at int) *stream.Session {
	p := g.kept[at]
	p.expiry.Stop()
	g.kept = slices.Delete(g.kept, at, at+1)
	return p.session
}

// oldest is the place of the session of certain owners that was kept first, and how many they have.
// The caller holds the lock.
func (g *Gateway) oldest(of func(owner) bool) (at, n int) {
	for i := len(g.kept) - 1; i >= 0; i-- {
		if of(g.kept[i].ticket.owner) {
			at = i
			n++
		}
	}
	return at, n
}

// surplus is the place of a session that has to go: the oldest of the user with the most of them.
// The caller holds the lock.
func (g *Gateway) surplus() int {
	count, most := map[string]int{}, ""
	for _, p := range g.kept {
		user := p.ticket.owner.user
		if count[user]++; count[user] > count[most] {
			most = user
		}
	}
	at, _ := g.oldest(func(o owner) bool { return o.user == most })
	return at
}
