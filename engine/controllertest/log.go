package controllertest

import "sync"

// testLog logs to a test until its end. Afterwards lines are dropped: an Event may still be on its
// way then, and a test that has ended must not log.
type testLog struct {
	t TB

	mu   sync.Mutex // guards over, and is held while a line is logged
	over bool
}

func newTestLog(t TB) *testLog {
	l := &testLog{t: t}
	t.Cleanup(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.over = true
	})
	return l
}

// Helper implements testr.TestingT.
func (l *testLog) Helper() { l.t.Helper() }

// Log implements testr.TestingT.
func (l *testLog) Log(args ...any) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.t.Log(args...)
	}
}
