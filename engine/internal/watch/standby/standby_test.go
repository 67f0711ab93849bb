package standby_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/cachetest"
	"github.com/hookloop/hookloop/engine/internal/watch/standby"
	"github.com/hookloop/hookloop/engine/object"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func resource(plural string) object.Resource {
	return object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: plural}, Plural: plural, Namespaced: true}
}

// TestWant: a set watches the resources that are wanted last, and one that is forbidden does not
// keep it from being filled. In the end it watches nothing.
func TestWant(t *testing.T) {
	s := cachetest.New(t)
	c, err := cache.New(cache.Config{Config: s.Config()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pages := resource("pages")
	books := resource("books")
	secrets := resource("secrets")
	s.Refuse(secrets, http.StatusForbidden)
	changed := make(chan struct{}, 100)
	set := standby.New(standby.Config{Cache: c, Clock: clock.RealClock{}, Changed: func() { changed <- struct{}{} }})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	set.Want(ctx, []object.Resource{pages, secrets})
	until(t, set.Filled)
	if _, err := set.View(pages); err != nil {
		t.Errorf("the pages cannot be read: %v", err)
	}
	if _, err := set.View(secrets); err == nil {
		t.Error("the secrets can be read")
	}
	for range 2 { // one is listed, one cannot be
		<-changed
	}
	s.Put(pages, `{"apiVersion":"v1","kind":"pages","metadata":{"namespace":"a","name":"x","uid":"1"}}`)
	<-changed

	set.Want(ctx, []object.Resource{books})
	until(t, func() bool { open, _ := s.Watches(pages); return open == 0 && set.Filled() })
	if _, err := set.View(books); err != nil {
		t.Errorf("the books cannot be read: %v", err)
	}
	stop()
	set.Wait()
	until(t, func() bool { open, _ := s.Watches(books); return open == 0 })
}

// until waits for a condition.
func until(t *testing.T, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
	}
}
