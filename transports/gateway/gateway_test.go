package gateway

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/transports/gateway/internal/auth"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func serves(worker string) *streamv1.Attach { return &streamv1.Attach{Worker: worker} }

func attaching(a *streamv1.Attach) *streamv1.HookMessage {
	return &streamv1.HookMessage{Message: &streamv1.HookMessage_Attach{Attach: a}}
}

// TestFirstMessage rejects invalid first messages.
func TestFirstMessage(t *testing.T) {
	intercepts := func(i *streamv1.Intercept) *streamv1.HookMessage { return attaching(&streamv1.Attach{Intercept: i}) }
	cases := map[string]struct {
		first *streamv1.HookMessage
		code  codes.Code
		says  string
	}{
		"none":  {nil, codes.DeadlineExceeded, "there was no attach message within 10s"},
		"empty": {&streamv1.HookMessage{}, codes.InvalidArgument, "expected attach"},
		"another": {
			&streamv1.HookMessage{Message: &streamv1.HookMessage_Welcome{Welcome: &streamv1.Welcome{}}},
			codes.InvalidArgument,
			"expected attach",
		},
		"a large one": {
			attaching(&streamv1.Attach{Worker: strings.Repeat("a", maxAttachBytes)}), codes.InvalidArgument,
			"the first message has 16392 bytes, expected at most 16384",
		},
		"empty names": {
			&streamv1.HookMessage{Message: &streamv1.HookMessage_Trigger{Trigger: &streamv1.Trigger{
				Parents: slices.Repeat([]*streamv1.ParentName{{}}, maxAttachBytes/2-10),
			}}},
			codes.InvalidArgument, "takes more than 65536 bytes of memory",
		},
		"neither": {
			attaching(&streamv1.Attach{}),
			codes.InvalidArgument,
			"worker is empty, expected a name, or an intercept",
		},
		"both": {
			attaching(
				&streamv1.Attach{Worker: "a", Intercept: &streamv1.Intercept{}},
			),
			codes.InvalidArgument,
			"worker is set beside intercept",
		},
		"an unknown kind": {
			intercepts(
				&streamv1.Intercept{ControllerKind: "Deployment", ControllerName: "web"},
			),
			codes.InvalidArgument,
			`controller_kind "Deployment"`,
		},
		"a controller without a name": {
			intercepts(&streamv1.Intercept{ControllerKind: "CompositeController"}), codes.InvalidArgument, `controller_name ""`,
		},
		"a selector that is none": {
			intercepts(
				&streamv1.Intercept{ControllerKind: "CompositeController", ControllerName: "web", LabelSelector: "a in ("}),
			codes.InvalidArgument,
			"intercept.label_selector: ",
		},
		"a selector that is too long": {
			intercepts(
				&streamv1.Intercept{
					ControllerKind: "CompositeController",
					ControllerName: "web",
					LabelSelector:  strings.Repeat("a", 4097),
				},
			),
			codes.InvalidArgument,
			"intercept.label_selector: has 4097 bytes, expected at most 4096",
		},
		"a namespace that is too long": {
			intercepts(
				&streamv1.Intercept{
					ControllerKind: "CompositeController",
					ControllerName: "web",
					Namespace:      strings.Repeat("a", 254),
				},
			),
			codes.InvalidArgument,
			"intercept has a namespace of 254 bytes",
		},
		"a controller that does not run": {
			intercepts(&streamv1.Intercept{ControllerKind: "DecoratorController", ControllerName: "web"}),
			codes.FailedPrecondition, `there is no running DecoratorController "web"`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newTestGateway(t).dial("laptop")
				if c.first != nil {
					g.send(c.first)
				}
				if end := g.end(); end.Code() != c.code || !strings.Contains(end.Message(), c.says) {
					t.Errorf("the call ends with %v, want %s: %s", end, c.code, c.says)
				}
			})
		})
	}
}

// TestFirstMessageWithoutMemory is read: before the check of its right, a call neither waits for
// memory nor reserves any.
func TestFirstMessageWithoutMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		h.settings.Memory = budget.New(4 << 20)
		if err := h.settings.Memory.Share(budget.Decoding).TryAcquire(1 << 20); err != nil {
			t.Fatal(err)
		}
		h.guard.forbidden = status.Error(codes.PermissionDenied, "you may not")
		g := h.dial("laptop")
		g.send(attaching(serves("hello")))
		if end := g.end(); end.Code() != codes.PermissionDenied {
			t.Errorf("the call ends with %v", end)
		}
	})
}

// TestGuard passes the required right to the Guard, and rejects the call if the Guard does.
func TestGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		h.guard.forbidden = status.Error(codes.PermissionDenied, "you may not")
		if end := h.attach("laptop", serves("hello")).end(); end.Code() != codes.PermissionDenied {
			t.Errorf("without the right the call ends with %v", end)
		}
		h.attach("laptop",
			&streamv1.Attach{Intercept: &streamv1.Intercept{ControllerKind: "DecoratorController", ControllerName: "web"}}).end()
		want := []auth.Right{
			{Verb: "serve", Group: group, Resource: "hookworkers", Name: "hello"},
			{Verb: "intercept", Group: group, Resource: "decoratorcontrollers", Name: "web"},
		}
		if diff := cmp.Diff(want, h.guard.rights); diff != "" {
			t.Errorf("rights that were asked for (-want +got):\n%s", diff)
		}
		h.guard.unknown = status.Error(codes.Unauthenticated, "who are you")
		if end := h.dial("stranger").end(); end.Code() != codes.Unauthenticated {
			t.Errorf("a stranger's call ends with %v", end)
		}
	})
}

// TestWorker answers for the controllers that refer to it while a hook serves it.
func TestWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		opened := h.open(settingsOf("web", nil), "hello", nil)
		want := `HookUnreachable: hook sync worker hello: Unavailable: "no hook that serves worker \"hello\" has dialled in"`
		if got := h.answerOf(opened, "a"); got != want {
			t.Errorf("before it came:\n got %s\nwant %s", got, want)
		}
		other := h.attach("other", serves("another"))
		laptop := h.attach("laptop", serves("hello"))
		if got := h.answerOf(opened, "a"); got != `"laptop"` {
			t.Errorf("when it is there: got %s", got)
		}
		h.guard.revoke(status.Error(codes.PermissionDenied, "no longer"))
		if end := laptop.end(); end.Code() != codes.PermissionDenied {
			t.Errorf("when the right is taken away, the call ends with %v", end)
		}
		want = `HookUnreachable: hook sync worker hello: Unavailable: ` +
			`"the last hook that served worker \"hello\" has gone: no longer"`
		if got := h.answerOf(opened, "a"); got != want {
			t.Errorf("when it has gone:\n got %s\nwant %s", got, want)
		}
		other.leave()
		other.end()
		if err := opened.Close(); err != nil || len(h.workers) > 0 || len(h.controllers) > 0 {
			t.Errorf("in the end the gateway knows %d workers and %d controllers (%v), want none", len(h.workers),
				len(h.controllers), err)
		}
	})
}

// TestLimits attaches too many hooks.
func TestLimits(t *testing.T) {
	cases := map[string]struct {
		attach *streamv1.Attach
		says   string
	}{
		"one worker": {serves("hello"), `worker "hello" has 64 sessions already`},
		"intercepts of one controller": {
			&streamv1.Attach{Intercept: &streamv1.Intercept{ControllerKind: "CompositeController", ControllerName: "web"}},
			`CompositeController "web" has 64 intercepts already`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestGateway(t)
				h.open(settingsOf("web", nil), "", answering("own"))
				var last *testHook
				for i := range maxSessions {
					last = h.attach(fmt.Sprintf("laptop-%d", i), c.attach)
				}
				if end := h.attach("late", c.attach).end(); end.Code() != codes.ResourceExhausted ||
					!strings.Contains(end.Message(), c.says) {
					t.Errorf("one more ends with %v, want %s", end, c.says)
				}
				last.leave()
				last.end()
				if h.attach("later", c.attach).session == "" {
					t.Error("there is no room where one has gone")
				}
			})
		})
	}
}

// TestResume returns a session to its owner only.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		first := h.attach("laptop", serves("hello"))
		first.leave()
		first.end()
		synctest.Wait()
		back := func(user, worker, id string) string {
			g := h.attach(user, &streamv1.Attach{Worker: worker, SessionId: id})
			g.leave()
			g.end()
			return g.session
		}
		for name, got := range map[string]string{
			"another user":          back("stranger", "hello", first.session),
			"another worker":        back("laptop", "bye", first.session),
			"no id":                 back("laptop", "hello", ""),
			"an id that is unknown": back("laptop", "hello", "x"),
		} {
			if got == first.session || len(got) < 20 {
				t.Errorf("%s gets the session %q", name, got)
			}
		}
		if got := back("laptop", "hello", first.session); got != first.session {
			t.Errorf("the hook that comes back gets %q, want its own", got)
		}
	})
}

// TestNewBuildOfAWorker resyncs the controllers that refer to it.
func TestNewBuildOfAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		triggers := make(chan hook.Trigger, 10)
		opened := h.open(settingsOf("web", triggers), "hello", nil)
		h.attachAs("old", "1", serves("hello"))
		if len(triggers) > 0 {
			t.Errorf("the first build causes %+v", <-triggers)
		}
		h.attachAs("new", "2", serves("hello"))
		if got := <-triggers; got.Reason != "worker hello has a new build" || !got.LowPriority || !got.Invalidate {
			t.Errorf("the new build causes %+v", got)
		}
		if got := h.answerOf(opened, "a"); got != `"new"` {
			t.Errorf("got %s, want the new build's answer", got)
		}
	})
}

// TestTrigger requests syncs without a session.
func TestTrigger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		triggers := make(chan hook.Trigger, 10)
		h.open(settingsOf("web", triggers), "hello", nil)
		h.open(settingsOf("wiki", triggers), "hello", nil)
		cases := map[string]struct {
			worker  string
			trigger *streamv1.Trigger
			parents uint32
			code    codes.Code
			says    string
		}{
			"all controllers": {"hello", &streamv1.Trigger{}, 6, codes.OK, ""},
			"one controller":  {"hello", &streamv1.Trigger{ControllerName: "wiki"}, 3, codes.OK, ""},
			"nothing said":    {"hello", nil, 6, codes.OK, ""},
			"no worker":       {"", &streamv1.Trigger{}, 0, codes.InvalidArgument, "worker is empty"},
			"an unknown worker": {
				"bye",
				&streamv1.Trigger{},
				0,
				codes.FailedPrecondition,
				`no running controller refers to worker "bye"`,
			},
			"another controller": {
				"hello",
				&streamv1.Trigger{ControllerName: "x"},
				0,
				codes.FailedPrecondition,
				"under the name x",
			},
			"a selector of no use": {
				"hello",
				&streamv1.Trigger{LabelSelector: "a in ("},
				0,
				codes.InvalidArgument,
				"label_selector",
			},
		}
		for name, c := range cases {
			r, err := h.Trigger(t.Context(), &streamv1.TriggerRequest{Worker: c.worker, Trigger: c.trigger})
			if r.GetParents() != c.parents || status.Code(err) != c.code ||
				!strings.Contains(status.Convert(err).Message(), c.says) {
				t.Errorf("%s: got %d parents, %v; want %d, %s: %s", name, r.GetParents(), err, c.parents, c.code, c.says)
			}
		}
		h.guard.forbidden = status.Error(codes.PermissionDenied, "you may not")
		if _, err := h.Trigger(t.Context(),
			&streamv1.TriggerRequest{Worker: "hello"}); status.Code(err) != codes.PermissionDenied {
			t.Errorf("without the right: got %v", err)
		}
	})
}

// TestSubscribe sends the triggers of a worker to a controller without hooks, until it cancels.
func TestSubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		cancel := h.Subscribe("Controller", "images", "hello", func(hook.Trigger) (int, error) { return 4, nil })
		trigger := func() (uint32, codes.Code) {
			r, err := h.Trigger(t.Context(), &streamv1.TriggerRequest{Worker: "hello", Trigger: &streamv1.Trigger{
				ControllerName: "images",
			}})
			return r.GetParents(), status.Code(err)
		}
		if n, code := trigger(); n != 4 || code != codes.OK {
			t.Errorf("got %d objects, %s, want 4", n, code)
		}
		cancel()
		if _, code := trigger(); code != codes.FailedPrecondition {
			t.Errorf("after the end: got %s, want FailedPrecondition", code)
		}
	})
}

// TestTriggersThatAreTooMany returns RESOURCE_EXHAUSTED.
func TestTriggersThatAreTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		s := settingsOf("web", nil)
		s.Trigger = func(hook.Trigger) (int, error) { return 0, hook.ErrTooManyTriggers }
		h.open(s, "hello", nil)
		if _, err := h.Trigger(t.Context(),
			&streamv1.TriggerRequest{Worker: "hello"}); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("got %v, want RESOURCE_EXHAUSTED", err)
		}
	})
}

// TestOpenersPassErrorsOn returns errors of the wrapped openers.
func TestOpenersPassErrorsOn(t *testing.T) {
	want := errors.New("no such field")
	h := newTestGateway(t)
	openers := h.Openers(hook.Openers{"grpc": func(hook.Config) (*hook.Opened, error) { return nil, want }})
	if _, err := openers["grpc"](settingsOf("web", nil)); !errors.Is(err, want) || len(h.controllers) > 0 {
		t.Errorf("got %v and %d controllers, want the error alone", err, len(h.controllers))
	}
}

// intercepting returns an attach message for the parents with a label team.
func intercepting(team string) *streamv1.Attach {
	return &streamv1.Attach{Intercept: &streamv1.Intercept{
		ControllerKind: "CompositeController", ControllerName: "web", Namespace: "shop", LabelSelector: "team=" + team,
	}}
}

// TestIntercept takes some parents from a controller's own hook, and returns them without a delay.
func TestIntercept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		triggers := make(chan hook.Trigger, 10)
		opened := h.open(settingsOf("web", triggers), "", answering("own"))
		laptop := h.attach("laptop", intercepting("blue"))
		if got := <-triggers; got.Reason != "an intercept begins" || got.Selector.String() != "team=blue" || !got.Invalidate {
			t.Errorf("its beginning causes %+v", got)
		}
		for parent, want := range map[string]string{"blue": `"laptop"`, "red": `"own"`} {
			if got := h.answerOf(opened, parent); got != want {
				t.Errorf("%s is answered by %s, want %s", parent, got, want)
			}
		}
		newer := h.attach("newer", intercepting("blue"))
		<-triggers
		if got := h.answerOf(opened, "blue"); got != `"newer"` {
			t.Errorf("blue is answered by %s, want the newest", got)
		}
		newer.leave()
		newer.end()
		<-triggers
		<-laptop.calls
		laptop.silent = true
		began := time.Now()
		answered := make(chan string, 1)
		go func() { answered <- h.answerOf(opened, "blue") }()
		<-laptop.calls
		laptop.leave()
		if got := <-answered; got != `"own"` || time.Since(began) > 0 { // in the bubble's time
			t.Errorf("when it has gone: got %s after %s, want the controller's own hook at once", got, time.Since(began))
		}
		if got := <-triggers; got.Reason != "an intercept has ended" || !got.Invalidate {
			t.Errorf("its end causes %+v", got)
		}
	})
}

// TestInterceptThatIsNotOpenYet leaves the parents with the controller's own hook.
func TestInterceptThatIsNotOpenYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		opened := h.open(settingsOf("web", nil), "", answering("own"))
		g := h.dial("laptop")
		g.send(attaching(intercepting("blue")))
		synctest.Wait()
		if got := h.answerOf(opened, "blue"); got != `"own"` {
			t.Errorf("got %s from a hook that has not said Welcome", got)
		}
	})
}

// TestNamedIntercept resyncs one parent only.
func TestNamedIntercept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		triggers := make(chan hook.Trigger, 10)
		opened := h.open(settingsOf("web", triggers), "", answering("own"))
		h.attach("laptop", &streamv1.Attach{Intercept: &streamv1.Intercept{
			ControllerKind: "CompositeController", ControllerName: "web", Namespace: "shop", Name: "blue",
		}})
		if got := (<-triggers).Parents; len(got) != 1 || got[0] != (hook.ParentName{Namespace: "shop", Name: "blue"}) {
			t.Errorf("it causes syncs of %v", got)
		}
		if blue, red := h.answerOf(opened, "blue"), h.answerOf(opened, "red"); blue != `"laptop"` || red != `"own"` {
			t.Errorf("blue is answered by %s, red by %s", blue, red)
		}
	})
}

// TestBrokenHook receives a description of its error.
func TestBrokenHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		opened := h.open(settingsOf("web", nil), "hello", nil)
		g := h.attach("laptop", serves("hello"))
		g.send(&streamv1.HookMessage{Message: &streamv1.HookMessage_Answer{Answer: &streamv1.Answer{CallId: 9}}})
		if end := g.end(); end.Code() != codes.InvalidArgument ||
			!strings.Contains(end.Message(), "call 9, which was never made") {
			t.Errorf("the call ends with %v", end)
		}
		want := `HookUnreachable: hook sync worker hello: Unavailable: ` +
			`"the last hook that served worker \"hello\" has gone: got an answer to call 9, which was never made"`
		if got := h.answerOf(opened, "a"); got != want {
			t.Errorf("afterwards:\n got %s\nwant %s", got, want)
		}
	})
}

// TestHookThatStops drains: its call ends with OK.
func TestHookThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGateway(t).attach("laptop", serves("hello"))
		g.send(&streamv1.HookMessage{Message: &streamv1.HookMessage_Drain{Drain: &streamv1.Drain{}}})
		if end := g.end(); end.Code() != codes.OK {
			t.Errorf("the call ends with %v, want OK", end)
		}
	})
}

// TestTriggerOfOneKind selects one of two controllers with the same name by its kind.
func TestTriggerOfOneKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		composite := make(chan hook.Trigger, 2)
		decorator := make(chan hook.Trigger, 2)
		h.open(settingsOf("web", composite), "hello", nil)
		other := settingsOf("web", decorator)
		other.ControllerKind = "DecoratorController"
		h.open(other, "hello", nil)
		ask := func(kind string) int {
			t.Helper()
			answer, err := h.Trigger(t.Context(), &streamv1.TriggerRequest{
				Worker: "hello", Trigger: &streamv1.Trigger{ControllerName: "web", ControllerKind: kind},
			})
			if err != nil {
				t.Fatal(err)
			}
			return int(answer.GetParents())
		}
		if n := ask("DecoratorController"); n != 3 || len(composite) != 0 || len(decorator) != 1 {
			t.Errorf("%d parents; the composite controller was asked %d times, the decorator controller %d times",
				n, len(composite), len(decorator))
		}
		if n := ask(""); n != 6 {
			t.Errorf("%d parents of both, want 6", n)
		}
	})
}
