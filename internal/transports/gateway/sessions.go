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
	// maxIdle bounds the sessions that are kept for hooks that may come back, and maxIdlePerOwner
	// those of one owner.
	maxIdle         = 256
	maxIdlePerOwner = 4
	// idleTimeout is how long a session is kept.
	idleTimeout = 10 * time.Minute
	// handover is how long a stream may take to end when its hook has opened another.
	handover = 5 * time.Second
)

// owner is whose a session is, so that nobody else finds it: what was attached to, a worker's name
// or a claim, and the caller's name.
type owner struct {
	target any // a string or a claim
	user   string
}

// sessionKey is what a hook shows to have its session back.
type sessionKey struct {
	owner owner
	id    string
}

// attached is a session with a stream.
type attached struct {
	session *stream.Session
	left    chan struct{} // closed when it has no stream any more
}

// idleSession is a session without a stream.
type idleSession struct {
	key     sessionKey
	session *stream.Session
	expiry  clock.Timer
}

// errSuperseded ends a stream whose hook has come back on another, because its own end has lost it.
var errSuperseded = status.New(codes.Aborted, "the hook has opened the session on another stream")

// takeOver ends the stream that a hook's session is still on, and waits until it is off it. Where
// that takes too long, the hook gets another session.
func (g *Gateway) takeOver(ctx context.Context, key sessionKey) {
	g.mu.Lock()
	previous := g.attached[key]
	g.mu.Unlock()
	if previous == nil {
		return
	}
	go previous.session.End(errSuperseded) // it returns when that stream has ended
	timer := g.settings.Clock.NewTimer(handover)
	defer timer.Stop()
	select {
	case <-previous.left:
	case <-timer.C():
	case <-ctx.Done():
	}
}

// resume finds the session that a hook comes back to, or makes one. leave must be called when it
// has no stream any more.
func (g *Gateway) resume(key sessionKey) (s *stream.Session, leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.IndexFunc(g.idle, func(p *idleSession) bool { return p.key == key })
	if at >= 0 {
		s = g.removeIdle(at)
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
	key.id = s.ID()
	current := &attached{s, make(chan struct{})}
	g.attached[key] = current
	return s, func() {
		g.keepIdle(key, s)
		close(current.left)
	}
}

// park keeps a session for a hook that may come back, if one was ever there.
func (g *Gateway) keepIdle(key sessionKey, s *stream.Session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.attached, key)
	if !s.Welcomed() {
		s.Close()
		return
	}
	p := &idleSession{key: key, session: s}
	p.expiry = g.settings.Clock.AfterFunc(idleTimeout, func() { g.expire(p) })
	g.idle = append(g.idle, p)
	if oldest, n := g.oldest(func(o owner) bool { return o == key.owner }); n > maxIdlePerOwner {
		g.closeIdle(oldest)
	}
	if len(g.idle) > maxIdle {
		g.closeIdle(g.victim())
	}
}

// expire forgets a session that nobody came back to.
func (g *Gateway) expire(p *idleSession) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at := slices.Index(g.idle, p); at >= 0 {
		g.closeIdle(at)
	}
}

// forget drops a session that is kept. The caller holds the lock.
func (g *Gateway) closeIdle(at int) { g.removeIdle(at).Close() }

// take takes a session out of those that are kept. The caller holds the lock.
func (g *Gateway) removeIdle(at int) *stream.Session {
	p := g.idle[at]
	p.expiry.Stop()
	g.idle = slices.Delete(g.idle, at, at+1)
	return p.session
}

// oldest is the place of the session of certain owners that was kept first, and how many they have.
// The caller holds the lock.
func (g *Gateway) oldest(of func(owner) bool) (at, n int) {
	for i := len(g.idle) - 1; i >= 0; i-- {
		if of(g.idle[i].key.owner) {
			at = i
			n++
		}
	}
	return at, n
}

// victim is the place of a session that has to go: the oldest of the user with the most of them.
// The caller holds the lock.
func (g *Gateway) victim() int {
	count, most := map[string]int{}, ""
	for _, p := range g.idle {
		user := p.key.owner.user
		if count[user]++; count[user] > count[most] {
			most = user
		}
	}
	at, _ := g.oldest(func(o owner) bool { return o.user == most })
	return at
}
