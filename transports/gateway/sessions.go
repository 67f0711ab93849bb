package gateway

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/hookloop/hookloop/transports/internal/stream"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"
)

const (
	// maxIdle limits the sessions that wait for their hooks to reconnect, and maxIdlePerOwner those
	// of each owner.
	maxIdle         = 256
	maxIdlePerOwner = 4
	// idleTimeout is how long a session can wait for a new stream.
	idleTimeout = 10 * time.Minute
	// handover limits how long we wait for a stream to end after its hook has opened another one.
	handover = 5 * time.Second
)

// owner identifies who may resume a session: the user, and the target, which is a worker's name or
// a claim.
type owner struct {
	target any // a string or a claim
	user   string
}

// sessionKey identifies a session that a hook may resume.
type sessionKey struct {
	owner owner
	id    string
}

// attached is a session that has a stream.
type attached struct {
	session *stream.Session
	left    chan struct{} // closed when the stream has ended
}

// idleSession is a session that waits for a stream.
type idleSession struct {
	key     sessionKey
	session *stream.Session
	expiry  clock.Timer
}

// errSuperseded ends a stream after its hook has resumed the session on another one.
var errSuperseded = status.New(codes.Aborted, "the hook has opened the session on another stream")

// takeOver ends the stream that still uses the session, and waits for it. If this takes longer than
// handover, the hook gets a new session.
func (g *Gateway) takeOver(ctx context.Context, key sessionKey) {
	g.mu.Lock()
	previous := g.attached[key]
	g.mu.Unlock()
	if previous == nil {
		return
	}
	go previous.session.End(errSuperseded) // returns when that stream has ended
	timer := g.settings.Clock.NewTimer(handover)
	defer timer.Stop()
	select {
	case <-previous.left:
	case <-timer.C():
	case <-ctx.Done():
	}
}

// resume returns the idle session for a key, or a new session. Call leave when the session's stream
// has ended.
func (g *Gateway) resume(key sessionKey) (s *stream.Session, leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.IndexFunc(g.idle, func(p *idleSession) bool { return p.key == key })
	if at >= 0 {
		s = g.removeIdle(at)
	} else {
		s = stream.New(
			stream.Config{
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

// keepIdle keeps a session so that the hook can reconnect, provided that the handshake was
// completed.
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

// CachedArrivals returns how many arrivals all workers and intercepts remember.
func (g *Gateway) CachedArrivals() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, w := range g.workers {
		n += w.pool.Arrivals()
	}
	for _, all := range g.intercepts {
		for _, i := range all {
			n += i.pool.Arrivals()
		}
	}
	return n
}

// expire closes a session that was not resumed in time.
func (g *Gateway) expire(p *idleSession) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at := slices.Index(g.idle, p); at >= 0 {
		g.closeIdle(at)
	}
}

// closeIdle closes an idle session. The caller must hold the lock.
func (g *Gateway) closeIdle(at int) { g.removeIdle(at).Close() }

// removeIdle takes a session out of the list of idle sessions. The caller must hold the lock.
func (g *Gateway) removeIdle(at int) *stream.Session {
	p := g.idle[at]
	p.expiry.Stop()
	g.idle = slices.Delete(g.idle, at, at+1)
	return p.session
}

// oldest looks at the idle sessions whose owner matches. It returns the index of the oldest, and
// how many there are. The caller must hold the lock.
func (g *Gateway) oldest(of func(owner) bool) (at, n int) {
	for i := len(g.idle) - 1; i >= 0; i-- {
		if of(g.idle[i].key.owner) {
			at = i
			n++
		}
	}
	return at, n
}

// victim returns the index of the session to evict: the oldest session of the user who has most.
// The caller must hold the lock.
func (g *Gateway) victim() int {
	count := map[string]int{}
	most := ""
	for _, p := range g.idle {
		user := p.key.owner.user
		count[user]++
		if count[user] > count[most] {
			most = user
		}
	}
	at, _ := g.oldest(func(o owner) bool { return o.user == most })
	return at
}
