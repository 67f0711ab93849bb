package fallback

import "time"

const (
	// silenceTimeout is the time without any response after which the preferred hook counts as
	// unreachable. Hooks with a short timeout have less.
	silenceTimeout = time.Second
	// minHold is the time for which the preferred hook must have been good before it is tried
	// again. It doubles, up to maxHold, if the hook fails the trial, or less than calmPeriod after
	// its return: each change of side syncs all parents.
	minHold    = 10 * time.Second
	maxHold    = 5 * time.Minute
	calmPeriod = 10 * time.Minute
	// minRecheck and maxRecheck bound the time after which a preferred hook that does not serve an
	// operation is asked again.
	minRecheck = time.Minute
	maxRecheck = 10 * time.Minute
)

// state decides whether the preferred hook or the fallback answers. It has no clock and no lock;
// the caller guards it and passes the time.
type state struct {
	// away reports that the fallback answers, and cause why.
	away  bool
	cause string
	// responded is the time of the preferred hook's last response.
	responded time.Time
	// good is the time since when the preferred hook can be reached; zero if the last probe failed.
	good time.Time
	hold time.Duration
	// returned is the time at which the preferred hook last took over again.
	returned time.Time
	// trying reports that one question tries the preferred hook.
	trying bool
	// soon reports that the next question may try the preferred hook before its time, because the
	// fallback does not respond.
	soon bool
}

// missed records that a question that began at a time got no response. It reports whether the
// fallback answers now: if the preferred hook has responded to no question for that long.
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

// probed records the result of a probe.
func (s *state) probed(now time.Time, reachable bool) {
	switch {
	case !reachable:
		s.good = time.Time{}
	case s.good.IsZero():
		s.good = now
	}
}

// due reports whether a question may try the preferred hook.
func (s *state) due(now time.Time) bool {
	return s.away && !s.trying && !s.good.IsZero() && (s.soon || now.Sub(s.good) >= s.hold)
}

// failed records that the preferred hook did not respond to its trial.
func (s *state) failed(cause string) {
	s.trying = false
	s.soon = false
	s.cause = cause
	s.good = time.Time{}
	s.hold = min(2*s.hold, maxHold)
}

// back records that the preferred hook answers again.
func (s *state) back(now time.Time) {
	s.away = false
	s.cause = ""
	s.trying = false
	s.soon = false
	s.responded = now
	s.returned = now
}

// operation records whether the preferred hook serves one operation.
type operation struct {
	unserved bool
	cause    string
	// recheck is the time of the next question to the preferred hook, and wait the time before it.
	recheck time.Time
	wait    time.Duration
}

// refused records that the preferred hook does not serve the operation.
func (o *operation) refused(now time.Time, cause string) {
	o.wait = min(max(2*o.wait, minRecheck), maxRecheck)
	o.unserved, o.cause, o.recheck = true, cause, now.Add(o.wait)
}

// served records that the preferred hook serves the operation.
func (o *operation) served() { *o = operation{} }

// skips reports whether the preferred hook need not be asked. If it must be asked, other questions
// need not.
func (o *operation) skips(now time.Time) bool {
	if !o.unserved || now.Before(o.recheck) {
		return o.unserved
	}
	o.recheck = now.Add(o.wait)
	return false
}
