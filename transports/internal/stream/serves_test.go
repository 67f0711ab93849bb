package stream

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/hookloop/hookloop/engine/hook"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"k8s.io/utils/clock"
)

// TestPoolReportsOperations when a session opens, when a watcher is added later, and when another
// build implements others.
func TestPoolReportsOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(clock.RealClock{}, nil)
		var observed []string
		watch := func(c hook.ControllerKind) func() {
			return p.Watch(c, func(ops []hook.Op) { observed = append(observed, fmt.Sprint(c, ops)) })
		}
		defer watch(hook.Composite)()
		s := New(settingsOf("a", p.Changed))
		p.Add(s)
		welcome := func(methods ...string) *peer {
			peer := connectUntilEnd(t, s)
			peer.receive()
			peer.send(&streamv1.HookMessage{Message: &streamv1.HookMessage_Welcome{Welcome: &streamv1.Welcome{
				Version: 1, BuildId: "b", Window: &streamv1.Window{Calls: 10, Bytes: 1 << 20}, Methods: methods,
			}}})
			synctest.Wait()
			return peer
		}
		expect := func(what string, want ...string) {
			t.Helper()
			if fmt.Sprint(observed) != fmt.Sprint(want) {
				t.Errorf("%s: observed %q, want %q", what, observed, want)
			}
			observed = nil
		}
		const composite, decorator = "/hookloop.composite.v1.CompositeHookService/",
			"/hookloop.decorator.v1.DecoratorHookService/"
		silent := welcome()
		expect("a hook that names nothing")
		silent.fail(errLeft)
		synctest.Wait()
		welcome(composite+"Sync", "/something/else", decorator+"Customize").fail(errLeft)
		synctest.Wait()
		expect("a hook with functions", "composite[sync]")
		welcome(composite+"Sync", composite+"Finalize")
		expect("one more function", "composite[sync finalize]")
		watch(hook.Decorator)()
		expect("who asks later", "decorator[]")
	})
}

// TestMethodsOfAnotherContract reports a hook that names methods, and none of the contract's: it
// serves no operation. This differs from a hook that names none.
func TestMethodsOfAnotherContract(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(clock.RealClock{}, nil)
		var observed []string
		watch := func() func() {
			return p.Watch(hook.Composite, func(ops []hook.Op) { observed = append(observed, fmt.Sprint(ops)) })
		}
		defer watch()()
		s := New(settingsOf("a", p.Changed))
		p.Add(s)
		peer := connectUntilEnd(t, s)
		peer.receive()
		peer.send(&streamv1.HookMessage{Message: &streamv1.HookMessage_Welcome{Welcome: &streamv1.Welcome{
			Version: 1, BuildId: "b", Window: &streamv1.Window{Calls: 10, Bytes: 1 << 20},
			Methods: []string{"/hookloop.hook.v1.CompositeHookService/Sync"},
		}}})
		synctest.Wait()
		defer watch()()
		if want := []string{"[]", "[]"}; fmt.Sprint(observed) != fmt.Sprint(want) {
			t.Errorf("observed %q, want %q", observed, want)
		}
	})
}
