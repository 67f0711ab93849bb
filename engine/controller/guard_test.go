package controller_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/hookloop/hookloop/engine/controller"
)

// safeBuffer is a log that may be read while it is written.
type safeBuffer struct {
	mu  sync.Mutex // guards log
	log bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.String()
}

// TestMapperFails: after an error or a panic of a mapper all keys are reconciled, also one without
// an object that has bound references, and the key that the event would have mapped to. Each cause
// is logged once.
func TestMapperFails(t *testing.T) {
	log := &safeBuffer{}
	w := newFixture(t)
	w.log = logr.FromSlogHandler(slog.NewTextHandler(log, nil))
	seen := make(chan string, 1000)
	w.server.Put(configMaps, body(configMaps, "a", ""))
	w.server.Put(secrets, body(secrets, "absent", ""))
	var mu sync.Mutex
	fault := "" // guarded by mu
	setFault := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		fault = text
	}
	byName := controller.Map(
		func(_ context.Context, _ controller.Reader, before, now secret) ([]controller.Key, error) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case fault == "panic":
				panic("no luck")
			case fault != "":
				return nil, errors.New(fault)
			case now == nil:
				now = before
			}
			return []controller.Key{controller.KeyOf(now)}, nil
		})
	w.run(controller.New[configMap]("fails").Watch(controller.TypeOf[secret](), byName).Reconciler(reconciler(
		func(_ context.Context, req *controller.Request[configMap]) (controller.Result, error) {
			if _, err := controller.Get[secret](req, controller.Key{Namespace: "shop", Name: "config"}); err == nil {
				return controller.Result{}, errors.New("config exists, expected none")
			}
			seen <- req.Key.Name
			return controller.Result{}, nil
		})))
	awaitAll(t, seen, "a", "absent")
	for i, text := range []string{"panic", "no rights", "panic"} {
		setFault(text)
		w.server.Put(secrets, body(secrets, "s", ""))
		awaitAll(t, seen, "a", "absent")
		if i < 2 {
			continue
		}
		setFault("")
		awaitAll(t, seen, "s")
	}
	if n := strings.Count(log.String(), "mapper failed"); n != 2 {
		t.Errorf("%d lines about failed mappers, want one for each cause:\n%s", n, log)
	}
	if !strings.Contains(log.String(), "guard_test.go") {
		t.Errorf("the log lacks the stack of the panic:\n%s", log)
	}
}

// awaitAll receives until it has got all values.
func awaitAll(t *testing.T, c <-chan string, want ...string) {
	t.Helper()
	missing := map[string]bool{}
	for _, v := range want {
		missing[v] = true
	}
	for len(missing) > 0 {
		delete(missing, next(t, c))
	}
}
