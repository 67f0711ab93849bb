package transporttest

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
)

// memory counts reservations, or refuses them.
type memory struct {
	refuse bool

	mu       sync.Mutex // guards reserved
	reserved int64
}

// errNoMemory is the cause of a refused reservation.
var errNoMemory = errors.New("there is no memory for this answer")

// Reserve implements hook.Memory.
func (m *memory) Reserve(_ context.Context, bytes int64) (release func(), err error) {
	if m.refuse {
		return nil, &hook.Error{Kind: hook.Failed, Hook: "sync of the suite", Reason: "MemoryBudget", Err: errNoMemory}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reserved += bytes
	return func() {}, nil
}

// refusesFields checks that Open refuses each field with an error, and not the first question.
func (h *Harness) refusesFields(t *testing.T) {
	if len(h.Wrong) == 0 {
		t.Skip("the harness has no wrong fields")
	}
	for name, field := range h.Wrong {
		opened, err := h.Open(config(hook.Sync, field))
		if opened != nil || err == nil {
			t.Errorf("%s: got %v and %v, want an error that names the field", name, opened, err)
		}
	}
}

// countsMemory checks that an answer is counted before it is given, and that a refusal is passed on.
func (h *Harness) countsMemory(t *testing.T) {
	if !h.Reserves {
		t.Skip("the harness does not set Reserves")
	}
	status, err := json.Marshal(map[string]string{"text": FailText})
	if err != nil {
		t.Fatal(err)
	}
	field := h.Serve(t, "", func(context.Context, Received) Reply {
		return Reply{Answer: &hook.Answer{Status: status}}
	})
	counted := &memory{}
	q := question(t, hook.Composite, hook.Sync, "hi")
	if _, err := h.openWith(t, hook.Sync, field, counted).Ask(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if counted.reserved < int64(len(status)) {
		t.Errorf("%d bytes are reserved for an answer with a status of %d bytes", counted.reserved, len(status))
	}
	answer, err := h.openWith(t, hook.Sync, field, &memory{refuse: true}).Ask(t.Context(), q)
	if got := portError(t, answer, err); got.Reason != "MemoryBudget" || !errors.Is(err, errNoMemory) {
		t.Errorf("got %v, want the error of Reserve", err)
	}
}

// closes checks that a hook can be closed during a question, which ends then or goes on, and that a
// hook of the same field can be opened afterwards.
func (h *Harness) closes(t *testing.T) {
	var asks atomic.Int64
	asked := make(chan struct{})
	field := h.Serve(t, "", func(served context.Context, _ Received) Reply {
		if asks.Add(1) > 1 {
			return Reply{Answer: &hook.Answer{}}
		}
		close(asked)
		<-served.Done()
		return Reply{Fault: Hang}
	})
	opened, err := h.Open(config(hook.Sync, field))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	q := question(t, hook.Composite, hook.Sync, "hi")
	go func() {
		_, err := opened.Ask(ctx, q)
		ended <- err
	}()
	<-asked
	if opened.Close != nil {
		if err := opened.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("the question that the hook did not answer got an answer")
	}
	if _, err := h.open(t, hook.Sync, field).Ask(t.Context(), q); err != nil {
		t.Errorf("a hook that is opened after the first one was closed: %v", err)
	}
}
