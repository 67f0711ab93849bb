package auth

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"
)

// TestStrangersHaveTheirOwnClient reviews known callers while the client for unknown tokens is
// unavailable.
func TestStrangersHaveTheirOwnClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		strange := newFakeServer()
		known := newFakeServer()
		known.allowed["laptop"] = true
		g, err := New(Config{Client: strange, Known: known, Audience: "hookloop", Clock: clock.RealClock{}})
		if err != nil {
			t.Fatal(err)
		}
		ctx := opened(t.Context())
		caller, err := g.Authenticate(ctx)
		if err != nil || strange.reviews != 1 || known.reviews != 0 {
			t.Fatalf("%v; %d reviews by the strangers' client and %d by the other, want the one", err,
				strange.reviews, known.reviews)
		}
		strange.change(func() { strange.down = errDown })
		if err := g.Allow(ctx, caller, serve); err != nil {
			t.Errorf("a caller's right: %v", err)
		}
		time.Sleep(2 * reviewTTL)
		if _, err := g.Authenticate(ctx); err != nil {
			t.Errorf("a known caller's next call: %v", err)
		}
		kept, cancel := g.Recheck(ctx, caller, serve)
		defer cancel()
		time.Sleep(10 * MaxRecheck)
		if kept.Err() != nil {
			t.Errorf("a known caller's stream is ended: %v", kept.Err())
		}
		known.change(func() { delete(known.tokens, "good") })
		if _, err := g.Authenticate(ctx); status.Code(err) != codes.Unauthenticated {
			t.Errorf("a token that was withdrawn: %v", err)
		}
		if _, err := g.Authenticate(ctx); status.Code(err) != codes.Unavailable {
			t.Errorf("the token is unknown again: %v", err)
		}
	})
}

// TestFailuresOfAnAddress limits invalid tokens, without an effect on known callers of the address.
func TestFailuresOfAnAddress(t *testing.T) {
	g := start(t, logr.Discard())
	client := g.trusted()
	check(t, call(t, client, "Bearer good"), codes.OK)
	for i := range failureBurst {
		check(t, call(t, client, fmt.Sprintf("Bearer bad-%d", i)), codes.Unauthenticated)
	}
	check(t, call(t, client, "Bearer another"), codes.ResourceExhausted,
		"at most 5 tokens a second of 127.0.0.1 that are not accepted")
	if want := 1 + failureBurst; g.reviews != want {
		t.Errorf("the API server was lastReview %d times, want %d", g.reviews, want)
	}
	check(t, call(t, client, "Bearer good"), codes.OK)
	g.clock.Step(time.Second / failureRate)
	check(t, call(t, client, "Bearer another"), codes.Unauthenticated)
	g.change(func() { g.down = errDown })
	g.clock.Step(time.Second)
	for range 2 * failureBurst {
		check(t, call(t, client, "Bearer another"), codes.Unavailable)
	}
}
