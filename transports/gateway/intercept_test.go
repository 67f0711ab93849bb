package gateway

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/hook/wraptest"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestInterceptOutlivesItsController applies an intercept, and its triggers, to a restarted
// controller, as after a change of its spec.
func TestInterceptOutlivesItsController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		before := make(chan hook.Trigger, 10)
		after := make(chan hook.Trigger, 10)
		opened := h.open(settingsOf("web", before), "", answering("own"))
		laptop := h.attach("laptop", intercepting("blue"))
		<-before
		trigger := h.triggerWithin(h.intercepts[controller{"CompositeController", "web"}][0])
		if err := opened.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := trigger(&streamv1.Trigger{}); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("without a controller a trigger gets %v", err)
		}
		opened = h.open(settingsOf("web", after), "", answering("own"))
		for parent, want := range map[string]string{"blue": `"laptop"`, "red": `"own"`} {
			if got := h.answerOf(opened, parent); got != want {
				t.Errorf("%s is answered by %s, want %s", parent, got, want)
			}
		}
		if _, err := trigger(
			&streamv1.Trigger{Reason: "by hand"},
		); err != nil || len(before) > 0 ||
			(<-after).Reason != "by hand" {
			t.Errorf("a trigger gets %v, and %d went to the controller that is no more", err, len(before))
		}
		laptop.leave()
		laptop.end()
		if got := (<-after).Reason; got != "an intercept has ended" || len(h.intercepts) > 0 {
			t.Errorf("the controller hears %q in the end, and there are %d intercepts", got, len(h.intercepts))
		}
	})
}

// TestTriggerOfAnIntercept covers only the parents that the intercept answers for, whatever the
// trigger selects.
func TestTriggerOfAnIntercept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		triggers := make(chan hook.Trigger, 10)
		opened := h.open(settingsOf("web", triggers), "", answering("own"))
		h.attach("laptop", &streamv1.Attach{Intercept: &streamv1.Intercept{
			ControllerKind: "CompositeController",
			ControllerName: "web",
			Namespace:      "shop",
			LabelSelector:  "team in (blue, green)",
		}})
		<-triggers
		trigger := h.triggerWithin(h.intercepts[controller{"CompositeController", "web"}][0])
		if n, err := trigger(&streamv1.Trigger{}); n != 0 || err != nil || len(triggers) > 0 {
			t.Errorf("before it has answered: got %d, %v and %d triggers, want none", n, err, len(triggers))
		}
		for _, parent := range []string{"blue", "green", "red"} {
			h.answerOf(opened, parent)
		}
		names := func(names ...string) (out []*streamv1.ParentName) {
			for _, n := range names {
				out = append(out, &streamv1.ParentName{Namespace: "shop", Name: n})
			}
			return out
		}
		for want, asks := range map[string]*streamv1.Trigger{
			"blue green": {},
			"blue":       {Parents: names("blue", "red")},
			"green":      {LabelSelector: "team!=blue"},
			"":           {LabelSelector: "team=red"},
		} {
			n, err := trigger(asks)
			var got []string
			if len(triggers) > 0 {
				for _, p := range (<-triggers).Parents {
					got = append(got, p.Name)
				}
			}
			slices.Sort(got)
			if strings.Join(got, " ") != want || err != nil || (n > 0) != (want != "") {
				t.Errorf("%v: syncs of %v (%d, %v), want %s", asks, got, n, err, want)
			}
		}
	})
}

// observer records the intercepts.
type observer struct{ calls []string }

func (a *observer) Serves([]hook.Op) {}

func (a *observer) Answering(hook.Answering) {}

func (a *observer) Intercepted(by []string) { a.calls = append(a.calls, strings.Join(by, "; ")) }

// TestInterceptIsObserved reports an intercept when it begins, when the controller restarts, and
// when it ends. Answers name it.
func TestInterceptIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		controllers := &observer{}
		s := settingsOf("web", make(chan hook.Trigger, 10))
		s.Observer = controllers
		opened := h.open(s, "", answering("own"))
		laptop := h.attach("laptop", intercepting("blue"))
		const by = "laptop (namespace shop, labels team=blue)"
		if got := slices.Compact(controllers.calls); !slices.Equal(got, []string{"", by}) {
			t.Errorf("the controller hears %q, want %q", got, by)
		}
		for parent, want := range map[string]string{"blue": "laptop", "red": ""} {
			if got := h.answer(opened, parent).Intercept; got != want {
				t.Errorf("the answer about %s is an intercept of %q, want %q", parent, got, want)
			}
		}
		if err := opened.Close(); err != nil {
			t.Fatal(err)
		}
		anew := &observer{}
		s.Observer = anew
		h.open(s, "", answering("own"))
		laptop.leave()
		laptop.end()
		if got := slices.Compact(anew.calls); !slices.Equal(got, []string{by, ""}) {
			t.Errorf("the controller that is started anew hears %q", got)
		}
	})
}

// TestInterceptOfATransport takes one parent from a hook with a transport that a program adds. When
// the intercept is lost while it works on a question, the transport answers, and it has the time that
// its caller gives and not the rest of the intercept's timeout.
func TestInterceptOfATransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		const timeout = 4 * time.Second
		var left time.Duration
		letter := func(hook.Config) (*hook.Opened, error) {
			return &hook.Opened{Address: "letter:home", Timeout: timeout, Hook: hook.Func(
				func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
					deadline, _ := ctx.Deadline()
					left = time.Until(deadline)
					return answering("letter").Ask(ctx, q)
				})}, nil
		}
		triggers := make(chan hook.Trigger, 10)
		opened, err := h.Openers(hook.Openers{"letter": letter})["letter"](settingsOf("web", triggers))
		if err != nil {
			t.Fatal(err)
		}
		laptop := h.attach("laptop", intercepting("blue"))
		for parent, want := range map[string]string{"blue": `"laptop"`, "red": `"letter"`} {
			if got := h.answerOf(opened, parent); got != want {
				t.Errorf("%s is answered by %s, want %s", parent, got, want)
			}
		}
		laptop.silent = true
		time.AfterFunc(timeout-time.Millisecond, laptop.leave)
		limited := hook.Func(func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
			ctx, cancel := context.WithTimeout(ctx, 2*timeout) // as the engine does
			defer cancel()
			return opened.Ask(ctx, q)
		})
		if got := h.answerOf(limited, "blue"); got != `"letter"` || left < timeout {
			t.Errorf("after the intercept was lost: got %s, with %s left; want the transport with %s", got, left, timeout)
		}
		laptop.end()
	})
}

// TestATransportOpensNothing leaves the report about a transport that returns nothing to the caller.
func TestATransportOpensNothing(t *testing.T) {
	h := newTestGateway(t)
	nothing := func(hook.Config) (*hook.Opened, error) { return nil, nil }
	opened, err := h.Openers(hook.Openers{"letter": nothing})["letter"](settingsOf("web", nil))
	if opened != nil || err != nil {
		t.Errorf("got %v and %v, want what the transport returned", opened, err)
	}
}

// TestAHookThatCanBeInterceptedHasEveryField of the controller's own hook, such as its probe.
func TestAHookThatCanBeInterceptedHasEveryField(t *testing.T) {
	h := newTestGateway(t)
	openers := h.Openers(hook.Openers{"grpc": func(hook.Config) (*hook.Opened, error) { return wraptest.Full(), nil }})
	opened, err := openers["grpc"](settingsOf("web", nil))
	if err != nil {
		t.Fatal(err)
	}
	if missing := wraptest.Missing(opened); len(missing) > 0 || opened.Named != "shop" {
		t.Errorf("the hook does not have %q, and has the name %q", missing, opened.Named)
	}
}
