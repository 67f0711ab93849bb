package fallback_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/fallback"
	hookgrpc "github.com/hookloop/hookloop/transports/grpc"
	"github.com/hookloop/hookloop/transports/transporttest"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestPassesTheSuiteOfAllTransports runs the suite of all transports with either hook answering.
// The fallback is a gRPC hook, too: a composed hook does not depend on the protocols.
func TestPassesTheSuiteOfAllTransports(t *testing.T) {
	for name, sides := range map[string]struct{ preferred, fallback bool }{
		"the preferred hook answers": {preferred: true},
		"the fallback answers":       {fallback: true},
		"both can answer":            {preferred: true, fallback: true},
	} {
		t.Run(name, func(t *testing.T) {
			over := &hookgrpc.Transport{}
			composed := &fallback.Transport{
				Preferred: fallback.Side{Name: "one", Open: over.Open}, Fallback: fallback.Side{Name: "other", Open: over.Open},
			}
			transporttest.Run(t, transporttest.Harness{
				Open: unmarked(composed.Open),
				Serve: func(t *testing.T, timeout string, behave transporttest.Behavior) json.RawMessage {
					preferred := transporttest.ClosedAddress(t)
					fallback := transporttest.ClosedAddress(t)
					patient := timeout
					if sides.preferred {
						preferred = serve(t, behave)
					} else {
						patient = cmp.Or(timeout, "100ms") // the fallback answers soon
					}
					if sides.fallback {
						fallback = serve(t, behave)
					}
					return fmt.Appendf(nil, `{"one":%s,"other":%s}`, field(preferred, patient), field(fallback, timeout))
				},
				Nowhere: func(t *testing.T) json.RawMessage {
					one := transporttest.ClosedAddress(t)
					other := transporttest.ClosedAddress(t)
					return fmt.Appendf(nil, `{"one":%s,"other":%s}`, field(one, ""), field(other, ""))
				},
			})
		})
	}
}

// unmarked removes AnsweredBy, which the suite does not expect.
func unmarked(open hook.Opener) hook.Opener {
	return func(s hook.Config) (*hook.Opened, error) {
		opened, err := open(s)
		if err != nil {
			return nil, err
		}
		composed := opened.Hook
		opened.Hook = hook.Func(func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
			answer, err := composed.Ask(ctx, q)
			if answer != nil {
				answer.AnsweredBy = ""
			}
			return answer, err
		})
		return opened, nil
	}
}

func field(target, timeout string) json.RawMessage {
	return fmt.Appendf(nil, `{"target":%q,"timeout":%q,"insecure":true,"mode":"Unary"}`, target, timeout)
}

// serve starts a server on loopback and returns its address.
func serve(t *testing.T, behave transporttest.Behavior) string {
	t.Helper()
	return transporttest.ServeGRPC(t, transporttest.Listen(t), func(s *grpc.Server) {
		transporttest.Register(s, behave)
	})
}
