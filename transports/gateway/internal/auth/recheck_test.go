package auth

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

func fixed() clock.WithTickerAndDelayedExecution { return clocktesting.NewFakeClock(time.Now()) }

// over returns the context of a call over a connection.
func over(ctx context.Context, state tls.ConnectionState) context.Context {
	return peer.NewContext(ctx, &peer.Peer{AuthInfo: credentials.TLSInfo{State: state}})
}

// opened returns the context of a call with the token "good" over TLS.
func opened(ctx context.Context) context.Context {
	ctx = over(ctx, tls.ConnectionState{HandshakeComplete: true})
	return metadata.NewIncomingContext(ctx, metadata.Pairs("authorization", "Bearer good"))
}

// TestRecheck opens a stream and changes something before the second check, in synctest's time. The
// stream must be open after "alive" and closed after "ended", both counted from the change.
func TestRecheck(t *testing.T) {
	for _, test := range []struct {
		name         string
		change       func(*fakeServer)
		alive, ended time.Duration
		code         codes.Code
		says         string
	}{
		{name: "nothing happens", change: func(*fakeServer) {}, alive: 3 * time.Hour},
		{
			name: "the right is taken away", change: func(d *fakeServer) { d.allowed["laptop"] = false },
			ended: MaxRecheck, code: codes.PermissionDenied, says: `cannot serve resource "hookworkers"`,
		},
		{
			name: "the token is withdrawn", change: func(d *fakeServer) { delete(d.tokens, "good") },
			ended: MaxRecheck, code: codes.Unauthenticated, says: "the token is not accepted",
		},
		{
			name:   "the token is another one's",
			change: func(d *fakeServer) { d.tokens["good"] = accepts("laptop", "2", "hookloop") },
			ended:  MaxRecheck, code: codes.Unauthenticated, says: `the stream was opened by "laptop"`,
		},
		{
			name: "the API server is away", change: func(d *fakeServer) { d.down = errDown },
			// The first failing check is at least 4 minutes after the change; two periods follow.
			alive: 2 * MaxRecheck * 9 / 10, ended: 3 * MaxRecheck, code: codes.Unavailable,
			says: "the API server is not answering",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFakeServer()
				d.allowed["laptop"] = true
				g := guard(t, d, clock.RealClock{})
				ctx := opened(t.Context())
				caller, err := g.Authenticate(ctx)
				if err != nil {
					t.Fatal(err)
				}
				kept, cancel := g.Recheck(ctx, caller, serve)
				defer cancel()
				time.Sleep(MaxRecheck)
				synctest.Wait()
				d.change(func() { test.change(d) })
				time.Sleep(test.alive)
				synctest.Wait()
				if err := context.Cause(kept); err != nil {
					t.Fatalf("after %s: %v, want an open stream", test.alive, err)
				}
				if test.ended == 0 {
					return
				}
				time.Sleep(test.ended - test.alive)
				synctest.Wait()
				check(t, status.Convert(context.Cause(kept)), test.code, test.says)
			})
		})
	}
}

// TestRecheckToleratesOutages shorter than three checks, however often they occur.
func TestRecheckToleratesOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeServer()
		d.allowed["laptop"] = true
		g := guard(t, d, clock.RealClock{})
		kept, cancel := g.Recheck(opened(t.Context()), &Caller{Name: "laptop", UID: "1"}, serve)
		defer cancel()
		for range 20 {
			d.change(func() { d.down = errDown })
			time.Sleep(2*MaxRecheck*9/10 - time.Second)
			d.change(func() { d.down = nil })
			time.Sleep(MaxRecheck)
			if err := context.Cause(kept); err != nil {
				t.Fatalf("%v, want an open stream", err)
			}
		}
	})
}

// TestRecheckEnds with the stream or with cancel, without a log message about rights.
func TestRecheckEnds(t *testing.T) {
	g := guard(t, newFakeServer(), fixed())
	ctx, end := context.WithCancelCause(opened(t.Context()))
	kept, cancel := g.Recheck(ctx, &Caller{Name: "laptop"}, serve)
	gone := errors.New("the hook has gone")
	end(gone)
	<-kept.Done()
	cancel()
	if err := context.Cause(kept); !errors.Is(err, gone) {
		t.Errorf("the cause is %v, want %v", err, gone)
	}
	kept, cancel = g.Recheck(opened(t.Context()), &Caller{Name: "laptop"}, serve)
	cancel()
	cancel()
	if err := context.Cause(kept); !errors.Is(err, context.Canceled) {
		t.Errorf("the cause is %v, want %v", err, context.Canceled)
	}
}

// TestPeriods are at most Recheck, and vary.
func TestPeriods(t *testing.T) {
	g := guard(t, newFakeServer(), fixed())
	seen := map[time.Duration]bool{}
	for range 100 {
		p := g.period()
		if p > MaxRecheck || p < MaxRecheck*9/10 {
			t.Errorf("a period of %s, want %s to %s", p, MaxRecheck*9/10, MaxRecheck)
		}
		seen[p] = true
	}
	if len(seen) < 2 {
		t.Error("all periods are the same")
	}
}

// TestSettings names the invalid setting.
func TestSettings(t *testing.T) {
	good := Config{Client: newFakeServer(), Audience: "hookloop", Clock: fixed()}
	for says, change := range map[string]func(*Config){
		"no Client":                 func(s *Config) { s.Client = nil },
		"no Clock":                  func(s *Config) { s.Clock = nil },
		"the audience is empty":     func(s *Config) { s.Audience = "" },
		"Recheck is -1ns; expected": func(s *Config) { s.Recheck = -1 },
		"Recheck is 5m0.000000001s; expected more than 0 and at most 5m0s": func(s *Config) { s.Recheck = MaxRecheck + 1 },
	} {
		s := good
		change(&s)
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want an error that says %q", err, says)
		}
	}
}
