package inproc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/transporttest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPassesTheSuiteOfAllTransports(t *testing.T) {
	registry := &Registry{}
	transporttest.Run(t, transporttest.Harness{
		Open: registry.Open,
		Serve: func(t *testing.T, timeout string, behave transporttest.Behavior) json.RawMessage {
			registry.Register(t.Name(), function(behave))
			return fmt.Appendf(nil, `{"name":%q,"timeout":%q}`, t.Name(), timeout)
		},
		Lacks: []transporttest.Fault{transporttest.Huge},
	})
}

// function behaves as a case says.
func function(behave transporttest.Behavior) hook.Func {
	return func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
		reply := behave(ctx, transporttest.Record(ctx, q))
		switch reply.Fault {
		case "":
			return reply.Answer, nil
		case transporttest.Fail:
			return nil, errors.New(transporttest.FailText)
		case transporttest.Throttle:
			return nil, &hook.Error{Kind: hook.Throttled, Hook: "sync test", RetryAfter: transporttest.RetryAfter, Err: errors.New("busy")}
		case transporttest.Reject:
			return nil, &hook.Error{Kind: hook.Rejected, Hook: "sync test", Reason: transporttest.RejectReason, Err: errors.New("no")}
		case transporttest.Garbage:
			return nil, nil
		case transporttest.Hang:
			<-ctx.Done()
			return nil, ctx.Err()
		default:
			return nil, fmt.Errorf("fault %q is not known to this test", reply.Fault)
		}
	}
}

func TestAPanicIsAFailureOfTheHook(t *testing.T) {
	registry := &Registry{}
	registry.Register("boom", hook.Func(func(context.Context, *hook.Question) (*hook.Answer, error) { panic("out of range") }))
	opened, err := registry.Open(hook.Settings{Op: hook.Sync, Field: json.RawMessage(`{"name":"boom"}`)})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := opened.Ask(t.Context(), &hook.Question{})
	if answer != nil || hook.KindOf(err) != hook.Failed || !strings.Contains(err.Error(), "panic: out of range") {
		t.Errorf("got %v and %v, want a failure that names the panic", answer, err)
	}
}

func TestFieldsAreChecked(t *testing.T) {
	for field, want := range map[string]string{
		`{}`:                              "name: is missing",
		`{"name":"other"}`:                `name: "other" is not registered`,
		`{"name":"other","timeout":"1y"}`: `timeout: "1y" is no duration`,
		`[]`:                              "cannot unmarshal",
	} {
		_, err := (&Registry{}).Open(hook.Settings{Op: hook.Sync, Field: json.RawMessage(field)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", field, err, want)
		}
	}
}
