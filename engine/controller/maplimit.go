package controller

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"k8s.io/utils/clock"
)

// mapperTimeout is the time after which a mapper's call fails. All controllers of a process get the
// events of a resource one after the other, so that a mapper holds them up meanwhile.
const mapperTimeout = 10 * time.Second

// hungMappers are the calls of a controller's mappers that have not returned within mapperTimeout.
// It is safe for concurrent use.
type hungMappers struct {
	clock clock.WithTicker
	// changed is called with the number of calls when it has changed; it may be nil.
	changed func(calls int)

	mu sync.Mutex // guards since
	// since are the starts of the calls by the mapper's name.
	since map[string]time.Time
}

func newHungMappers(c clock.WithTicker, changed func(calls int)) *hungMappers {
	return &hungMappers{clock: c, changed: changed, since: map[string]time.Time{}}
}

// problems returns one line for each call that has not returned.
func (h *hungMappers) problems() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(h.since)) {
		all = append(all, fmt.Sprintf("mapper %s has not returned for %s; until it does, its events enqueue all keys",
			name, h.clock.Since(h.since[name]).Round(time.Second)))
	}
	return all
}

func (h *hungMappers) isHung(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, hung := h.since[name]
	return hung
}

func (h *hungMappers) set(name string, since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.since[name] = since
	h.report()
}

func (h *hungMappers) end(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.since, name)
	h.report()
}

// report calls changed. The caller holds the lock.
func (h *hungMappers) report() {
	if h.changed != nil {
		h.changed(len(h.since))
	}
}

// mapperTimeoutError reports a mapper that has not returned in time.
type mapperTimeoutError struct{ name string }

func (e *mapperTimeoutError) Error() string {
	return fmt.Sprintf("mapper %s has not returned within %s; it is not called again before it does",
		e.name, mapperTimeout)
}

// mapped is the result of a mapper.
type mapped struct {
	keys []Key
	err  error
}

// limited returns a mapFunc that calls f, the form of a user's function, with a time limit. A call
// that does not return keeps its goroutine; meanwhile f is not called, and all events fail.
func (b *binding) limited(user any, f mapFunc) mapFunc {
	if b.hung == nil {
		return f
	}
	name := fmt.Sprintf("%s of the watch of %s", funcName(user), b.watched.GVK.Kind)
	return func(ctx context.Context, e cache.Event) ([]Key, error) {
		if b.hung.isHung(name) {
			return nil, &mapperTimeoutError{name}
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		begun := b.hung.clock.Now()
		done := make(chan mapped, 1)
		go func() {
			keys, err := mapSafely(ctx, f, e)
			done <- mapped{keys, err}
		}()
		timer := b.hung.clock.NewTimer(mapperTimeout)
		defer timer.Stop()
		select {
		case m := <-done:
			return m.keys, m.err
		case <-timer.C():
		}
		err := &mapperTimeoutError{name}
		cancel(err)
		b.hung.set(name, begun)
		go func() {
			<-done // the object is mapped again
			b.hung.end(name)
		}()
		return nil, err
	}
}

// funcName returns the name of a function in its program.
func funcName(f any) string {
	if found := runtime.FuncForPC(reflect.ValueOf(f).Pointer()); found != nil {
		return found.Name()
	}
	return "function"
}
