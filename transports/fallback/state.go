package fallback

import "time"

const (
	// silenceTimeout is how long the preferred hook may stay silent before it counts as
	// unreachable. It is less for hooks with a short timeout.
	silenceTimeout = time.Second
	// minHold is how long the preferred hook must be reachable before it gets a trial. Each change
	// of side syncs all parents, so this time doubles, up to maxHold, when a trial fails or when
	// the hook fails within calmPeriod after its return.
	minHold    = 10 * time.Second
	maxHold    = 5 * time.Minute
	calmPeriod = 10 * time.Minute
	// minRecheck and maxRecheck limit when to ask a preferred hook again for an operation that it
	// did not serve.
	minRecheck = time.Minute
	maxRecheck = 10 * time.Minute
)

// state decides whether the preferred hook or the fallback answers. It has neither clock nor lock:
// the caller passes the time and guards it.
type state struct {
	// away is set while the fallback answers. cause says why.
	away  bool
	cause string
	// responded is when the preferred hook last responded.
	responded time.Time
	// good is when probes of the preferred hook began to succeed. It is zero if the last probe
	// failed.
	good time.Time
	hold time.Duration
	// returned is when the preferred hook last took over.
	returned time.Time
	// trying is set while one question tries the preferred hook.
	trying bool
	// soon is set if the next question may try the preferred hook early, because the fallback does
	// not respond.
	soon bool
}

// missed notes that a question, which was asked at began, got no response. It reports whether the
// fallback should answer now. That is so if the preferred hook has been silent to all questions for
// long enough.
func (s *state) missed(began, now time.Time, silenceTimeout time.Duration, cause string) bool {
	if s.away {
		return true
	}
	since := began
	if s.responded.After(since) {
		since = s.responded
	}
	if now.Sub(since) < silenceTimeout {
		return false
	}
	if !s.returned.IsZero() && now.Sub(s.returned) < calmPeriod {
		s.hold = min(2*s.hold, maxHold)
	} else {
		s.hold = minHold
	}
	s.away = true
	s.cause = cause
	s.good = time.Time{}
	s.trying = false
	s.soon = false
	return true
}

// probed notes the result of a probe.
func (s *state) probed(now time.Time, reachable bool) {
	switch {
	case !reachable:
		s.good = time.Time{}
	case s.good.IsZero():
		s.good = now
	}
}

// due reports whether a question may try the preferred hook now.
func (s *state) due(now time.Time) bool {
	return s.away && !s.trying && !s.good.IsZero() && (s.soon || now.Sub(s.good) >= s.hold)
}

// failed notes that the preferred hook did not respond to its trial.
func (s *state) failed(cause string) {
	s.trying = false
	s.soon = false
	s.cause = cause
	s.good = time.Time{}
	s.hold = min(2*s.hold, maxHold)
}

// back notes that the preferred hook answers again.
func (s *state) back(now time.Time) {
	s.away = false
	s.cause = ""
	s.trying = false
	s.soon = false
	s.responded = now
	s.returned = now
}

// operation remembers whether the preferred hook serves an operation.
type operation struct {
	unserved bool
	cause    string
	// recheck is when to ask the preferred hook again, and wait how long that was put off.
	recheck time.Time
	wait    time.Duration
}

// refused notes that the preferred hook does not serve the operation.
func (o *operation) refused(now time.Time, cause string) {
	o.wait = min(max(2*o.wait, minRecheck), maxRecheck)
	o.unserved, o.cause, o.recheck = true, cause, now.Add(o.wait)
}

// served notes that the preferred hook serves the operation.
func (o *operation) served() { *o = operation{} }

// skips reports whether the preferred hook need not be asked. When it is time to ask, only the
// first question does; the others still skip it.
func (o *operation) skips(now time.Time) bool {
	if !o.unserved || now.Before(o.recheck) {
		return o.unserved
	}
	o.recheck = now.Add(o.wait)
	return false
}
