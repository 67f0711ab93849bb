package inproc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/internal/protocol/session"
	sdk "github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/transports/transporttest"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// behavior is a hook with the behavior of a case.
type behavior struct{ transporttest.Behavior }

func (b behavior) Register(r grpc.ServiceRegistrar) { transporttest.Register(r, b.Behavior) }

// register returns a transport with one hook.
func register(t *testing.T, name string, h Hook) *Transport {
	t.Helper()
	transport, err := New(map[string]Hook{name: h}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return transport
}

func TestPassesTheSuiteOfAllTransports(t *testing.T) {
	hooks := map[string]*Transport{}
	transporttest.Run(t, transporttest.Harness{
		Open: func(s hook.Config) (*hook.Opened, error) {
			var field struct{ Name string }
			if err := json.Unmarshal(s.Field, &field); err != nil {
				return nil, err
			}
			return hooks[field.Name].Open(s)
		},
		Serve: func(t *testing.T, timeout string, behave transporttest.Behavior) json.RawMessage {
			hooks[t.Name()] = register(t, t.Name(), behavior{behave})
			return fmt.Appendf(nil, `{"name":%q,"timeout":%q}`, t.Name(), timeout)
		},
	})
}

// ask asks a hook of the SDK about a parent.
func ask(t *testing.T, h Hook, timeout string) (*hook.Answer, error) {
	t.Helper()
	return open(t, h, timeout).Ask(t.Context(), question(t))
}

func open(t *testing.T, h Hook, timeout string) *hook.Opened {
	t.Helper()
	opened, err := register(t, "web", h).Open(hook.Config{
		Op: hook.Sync, Kind: hook.Composite, Field: fmt.Appendf(nil, `{"name":"web","timeout":%q}`, timeout),
	})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func question(t *testing.T) *hook.Question {
	t.Helper()
	o, err := object.Decode([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return &hook.Question{Kind: hook.Composite, Op: hook.Sync, Controller: o, Parent: o}
}

func TestAHookOfTheSDKIsAsked(t *testing.T) {
	answer, err := ask(t, sdk.Composite{Sync: func(_ context.Context, r *sdk.SyncRequest) (*sdk.SyncResponse, error) {
		return &sdk.SyncResponse{Status: map[string]any{"of": r.Parent.Name}}, nil
	}}, "")
	if err != nil || string(answer.Status) != `{"of":"a"}` {
		t.Errorf("got %+v and %v, want the status of a", answer, err)
	}
}

func nothing(context.Context, *sdk.SyncRequest) (*sdk.SyncResponse, error) { return nil, nil }

func TestFaultsOfFunctions(t *testing.T) {
	for _, c := range []struct {
		name, text string
		kind       hook.ErrorKind
		sync       sdk.SyncFunc
	}{
		{"a panic", "panic: out of range", hook.Failed,
			func(context.Context, *sdk.SyncRequest) (*sdk.SyncResponse, error) { panic("out of range") }},
		{"the end of its goroutine", "ended its goroutine", hook.Failed,
			func(context.Context, *sdk.SyncRequest) (*sdk.SyncResponse, error) {
				runtime.Goexit()
				return nil, nil
			}},
		{"nothing", "neither a response nor an error", hook.Failed, nothing},
		{"no such function", "does not serve hookloop.composite.v1.CompositeHookService/Sync", hook.Failed, nil},
		{"a refusal", "no plan", hook.Rejected, func(context.Context, *sdk.SyncRequest) (*sdk.SyncResponse, error) {
			return nil, sdk.Reject("NoSuchPlan", "no plan")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer, err := ask(t, sdk.Composite{Sync: c.sync, Finalize: nothing}, "")
			if answer != nil || hook.ErrorKindOf(err) != c.kind || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v and %v, want %s with %q", answer, err, c.kind, c.text)
			}
		})
	}
}

// TestFunctionsThatDoNotEndAreBounded calls a function that ignores its context more often than its
// slots allow.
func TestFunctionsThatDoNotEndAreBounded(t *testing.T) {
	release := make(chan struct{})
	begun := make(chan struct{}, 2*session.DefaultCalls)
	opened := open(t, sdk.Composite{Sync: func(context.Context, *sdk.SyncRequest) (*sdk.SyncResponse, error) {
		begun <- struct{}{}
		<-release
		return &sdk.SyncResponse{}, nil
	}}, "1ms")
	defer close(release)
	var last error
	for range 2 * session.DefaultCalls {
		_, last = opened.Ask(t.Context(), question(t))
		if hook.ErrorKindOf(last) != hook.TimedOut {
			t.Fatalf("got %v, want %s", last, hook.TimedOut)
		}
	}
	if len(begun) > session.DefaultCalls || !strings.Contains(last.Error(), "64 calls of the hook have not ended") {
		t.Errorf("%d functions run, the last error is %v; want at most %d, and an error that names them",
			len(begun), last, session.DefaultCalls)
	}
}

// TestAnAnswerIsACopy modifies a response after the function has returned it.
func TestAnAnswerIsACopy(t *testing.T) {
	child := json.RawMessage(`{"kind":"Pod"}`)
	answer, err := ask(t, behavior{func(context.Context, transporttest.Received) transporttest.Reply {
		return transporttest.Reply{Answer: &hook.Answer{Children: []json.RawMessage{child}}}
	}}, "")
	if err != nil {
		t.Fatal(err)
	}
	copy(child, `[1, 2, 3, 4, 5]`)
	if got := string(answer.Children[0]); got != `{"kind":"Pod"}` {
		t.Errorf("got child %s, want what was returned", got)
	}
}

func TestAnAnswerIsCountedInTheMemoryBudget(t *testing.T) {
	memory := budget.New(1 << 20)
	transport, err := New(
		map[string]Hook{"web": sdk.Composite{Sync: func(context.Context, *sdk.SyncRequest) (*sdk.SyncResponse, error) {
			return &sdk.SyncResponse{Status: map[string]any{"a": strings.Repeat("x", 1<<20)}}, nil
		}}},
		memory,
	)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := transport.Open(hook.Config{Op: hook.Sync, Field: json.RawMessage(`{"name":"web"}`)})
	if err != nil {
		t.Fatal(err)
	}
	var failure *hook.Error
	if _, err := opened.Ask(t.Context(), question(t)); !errors.As(err, &failure) || failure.Reason != "MemoryBudget" {
		t.Errorf("got %v, want one with the reason MemoryBudget", err)
	}
}

func TestFieldsAreChecked(t *testing.T) {
	empty := &Transport{}
	one := register(t, "web", sdk.Composite{Sync: nothing})
	for _, c := range []struct {
		transport *Transport
		field     string
		contract  hook.ControllerKind
		want      string
	}{
		{one, `{}`, hook.Composite, "name: is missing"},
		{one, `{"name":"other"}`, hook.Composite, `name: "other" is not registered in this program; expected one of "web"`},
		{empty, `{"name":"web"}`, hook.Composite, `name: "web" is not registered: this program has no hooks of its own`},
		{one, `{"name":"web"}`, hook.Decorator,
			`name: "web" has no function for a DecoratorController; it is a hook of another kind of controller`},
		{one, `{"name":"web","timeout":"1y"}`, hook.Composite, `timeout: "1y" is no duration`},
		{one, `[]`, hook.Composite, "cannot unmarshal"},
	} {
		_, err := c.transport.Open(
			hook.Config{
				ControllerKind: "DecoratorController",
				Op:             hook.Sync,
				Kind:           c.contract,
				Field:          json.RawMessage(c.field),
			},
		)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.field, err, c.want)
		}
	}
}

// observer records the operations of a hook.
type observer struct{ serves []hook.Op }

func (o *observer) Serves(ops []hook.Op)   { o.serves = ops }
func (*observer) Intercepted([]string)     {}
func (*observer) Answering(hook.Answering) {}

func TestWhatAHookServesIsObserved(t *testing.T) {
	seen := &observer{}
	if _, err := register(t, "web", sdk.Composite{Sync: nothing, Finalize: nothing}).Open(hook.Config{
		Op: hook.Sync, Kind: hook.Composite, Field: json.RawMessage(`{"name":"web"}`), Observer: seen,
	}); err != nil {
		t.Fatal(err)
	}
	if want := []hook.Op{hook.Sync, hook.Finalize}; !slices.Equal(seen.serves, want) {
		t.Errorf("got %v, want %v", seen.serves, want)
	}
}

// silent registers nothing.
type silent struct{}

func (silent) Register(grpc.ServiceRegistrar) {}

func TestHooksAreChecked(t *testing.T) {
	for want, hooks := range map[string]map[string]Hook{
		`hook "": expected a name and a hook`:    {"": sdk.Composite{}},
		`hook "web": expected a name and a hook`: {"web": nil},
		`hook "web": has no function`:            {"web": sdk.Composite{}},
		`hook "mute": has no function`:           {"mute": silent{}},
	} {
		if _, err := New(hooks, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
