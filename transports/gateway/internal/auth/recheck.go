package auth

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hookloop/hookloop/internal/sleep"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
)

// maxUnavailable limits how many periods in a row a stream may continue while the API server does
// not answer.
const maxUnavailable = 2

// Recheck checks periodically, until ctx ends, that the caller of a stream is still authenticated
// and authorized. ctx must be the stream's context. If a check fails, Recheck cancels the context
// that it returns, and context.Cause is the status with which to end the stream. Call cancel when
// the stream ends; it waits for the goroutine.
//
// The first check runs after one period. While the API server does not answer, the stream may
// continue for two more periods.
func (g *Guard) Recheck(
	ctx context.Context,
	caller *Caller,
	rights ...Right,
) (kept context.Context, cancel context.CancelFunc) {
	kept, end := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() { // timer → check → cause of the stream's end
		defer close(ended)
		end(g.recheckLoop(kept, caller, rights))
	}()
	return kept, func() {
		end(context.Canceled)
		<-ended
	}
}

// recheckLoop returns why the stream should end, or nil if it has ended.
func (g *Guard) recheckLoop(ctx context.Context, caller *Caller, rights []Right) error {
	failed := 0
	for g.wait(ctx) {
		err := g.check(ctx, caller, rights)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			failed = 0
		case status.Code(err) == codes.Unavailable && failed < maxUnavailable:
			failed++
		default:
			klog.FromContext(ctx).Info("a stream is ended", "caller", caller.Name, "code",
				status.Code(err).String(), "why", status.Convert(err).Message())
			return err
		}
	}
	return nil
}

// wait waits for one period. It returns false if the stream has ended.
func (g *Guard) wait(ctx context.Context) bool {
	return sleep.For(ctx.Done(), g.clock, g.period())
}

// period returns Recheck minus a random tenth, so that streams which were opened together are
// checked at different times.
func (g *Guard) period() time.Duration {
	return g.recheck - rand.N(g.recheck/10+1) //nolint:gosec // it spreads load and protects no secret
}

func (g *Guard) check(ctx context.Context, caller *Caller, rights []Right) error {
	cred, err := g.credentialOf(ctx)
	if err != nil {
		return err
	}
	now, err := g.authenticateUncached(ctx, g.knownClient, cred)
	if err != nil {
		return err
	}
	if now.Name != caller.Name || now.UID != caller.UID {
		return g.unauthenticated(
			fmt.Sprintf("the stream was opened by %q, and its credential is now another one's", caller.Name))
	}
	for _, right := range rights {
		if err := g.reviewRight(ctx, g.knownClient, now, right); err != nil {
			return err
		}
		g.admit(now, right)
	}
	return nil
}
