package hook

import (
	"testing"
)

func (m *cacheMeter) expect(t *testing.T, what string, entries, hits, misses int64) {
	t.Helper()
	s := m.stats("test")
	if s.Entries != entries || s.Hits != hits || s.Misses != misses || (s.Bytes > 0) != (entries > 0) {
		t.Errorf("%s: %+v, want %d entries, %d hits, %d misses", what, s, entries, hits, misses)
	}
}

// TestUnaryCachesAreMetered asks about two parents in turns, with room for one of them.
func TestUnaryCachesAreMetered(t *testing.T) {
	meter := &cacheMeter{}
	caches := newUnaryCaches(maxUnaryBytes)
	caches.meter = meter
	meter.expect(t, "at the start", 0, 0, 0)
	encodeAbout(t, caches, "a", pages(200, "a"))
	meter.expect(t, "a first call", 1, 0, 1)
	encodeAbout(t, caches, "a", pages(200, "a"))
	meter.expect(t, "the same again", 1, 1, 1)
	encodeAbout(t, caches, "small", pages(2, "a"))
	meter.expect(t, "a small response", 1, 1, 2)
	caches.limit = int(meter.bytes.Load())
	encodeAbout(t, caches, "b", pages(200, "b"))
	meter.expect(t, "another parent in its place", 1, 1, 3)
	if got := meter.bytes.Load(); got > int64(caches.limit) {
		t.Errorf("%d bytes, want at most %d", got, caches.limit)
	}
	caches.clear()
	meter.expect(t, "at the end", 0, 1, 3)
}

// TestSessionsAreMetered ends streams of more sessions than are kept.
func TestSessionsAreMetered(t *testing.T) {
	meter := &cacheMeter{}
	s := &sessions{}
	open := func(id string) (*exchange, *sessionState) {
		x := &exchange{}
		state := s.take(id, x)
		state.cache = meter
		state.record(100, 1) // as after a call
		return x, state
	}
	for i := range 2 * maxIdle {
		id := string(rune('a' + i))
		x, state := open(id)
		s.give(id, x, state)
	}
	meter.expect(t, "more sessions than are kept", maxIdle, 0, 0)
	x, state := open("")
	meter.expect(t, "a session without an id", maxIdle+1, 0, 0)
	s.give("", x, state)
	meter.expect(t, "its end", maxIdle, 0, 0)
	x, state = open("late")
	s.close()
	meter.expect(t, "a session at the end of the server", 1, 0, 0)
	s.give("late", x, state)
	meter.expect(t, "at the end", 0, 0, 0)
}

// TestAllCacheStats names the caches.
func TestAllCacheStats(t *testing.T) {
	var names []string
	for _, s := range AllCacheStats() {
		names = append(names, s.Cache)
	}
	if len(names) != 2 || names[0] != "sessions" || names[1] != "unary" {
		t.Errorf("the caches are %v, want sessions and unary", names)
	}
}
