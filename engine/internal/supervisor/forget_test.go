package supervisor

import (
	"context"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"k8s.io/apimachinery/pkg/types"
)

// TestAGoneParentIsForgotten has a parent come and go: its hook forgets it, and so do the holders
// of related objects and retries.
func TestAGoneParentIsForgotten(t *testing.T) {
	w := newFixture(t)
	asked := make(chan struct{}, 100)
	forgotten := make(chan types.UID, 100)
	w.Openers = hook.Openers{"webhook": func(hook.Config) (*hook.Opened, error) {
		ask := func(context.Context, *hook.Question) (*hook.Answer, error) {
			asked <- struct{}{}
			return &hook.Answer{}, nil
		}
		return &hook.Opened{Hook: hook.Func(ask), Forget: func(uid types.UID, _ string) { forgotten <- uid }}, nil
	}}
	key := w.declare("hello", webSpec)
	w.look(key)
	defer w.stopAll(nil)
	if holders := w.running[key].pipeline.Holders; len(holders) != 2 {
		t.Errorf("the pipeline has %d holders of further state, want those of related objects and of retries", len(holders))
	}
	w.server.Put(webs, `{"apiVersion":"example.com/v1","kind":"Web",`+
		`"metadata":{"namespace":"shop","name":"web","uid":"u"}}`)
	await(t, asked, "a question about the parent")
	w.server.Delete(webs, "shop", "web")
	if uid := await(t, forgotten, "the hook to forget the parent"); uid != "u" {
		t.Errorf("the hook forgets %q, want u", uid)
	}
}

// await returns the next value of a channel.
func await[T any](t *testing.T, from <-chan T, want string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(time.Minute):
		t.Fatalf("waited in vain for %s", want)
		panic("unreachable")
	}
}
