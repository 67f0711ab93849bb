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

// maxUnavailable is for how many further periods a stream goes on while the API server cannot be asked.
const maxUnavailable = 2

// Keep looks again and again, as long as ctx lasts, whether the caller of a stream is still
// recognized and still has the rights, and otherwise cancels the context that it returns. Its cause
// (context.Cause) is then the status with which the handler ends the stream. ctx is the stream's
// own. cancel must be called when the stream ends; it returns when no goroutine is left.
//
// The first look is after one period, since the caller was just let in. Whoever cannot be looked
// up, because the API server does not answer, may go on for two further periods.
func (g *Guard) Recheck(
	ctx context.Context,
	caller *Caller,
	rights ...Right,
) (kept context.Context, cancel context.CancelFunc) {
	kept, end := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() { // timer → look → cause of the stream's end
		defer close(ended)
		end(g.recheckLoop(kept, caller, rights))
	}()
	return kept, func() {
		end(context.Canceled)
		<-ended
	}
}

// watch returns why the stream must end, or nil when it has ended.
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

// pause waits for a period, and reports whether the stream is still open.
func (g *Guard) wait(ctx context.Context) bool {
	return sleep.For(ctx.Done(), g.clock, g.period())
}

// period is up to a tenth less than Recheck, so that streams that were opened together are not
// looked at together.
func (g *Guard) period() time.Duration {
	return g.recheck - rand.N(g.recheck/10+1) //nolint:gosec // it spreads load and keeps no secret
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
		return g.unauthenticated(fmt.Sprintf("the stream was opened by %q, and its credential is now another one's", caller.Name))
	}
	for _, right := range rights {
		if err := g.Allow(ctx, now, right); err != nil {
			return err
		}
	}
	return nil
}
