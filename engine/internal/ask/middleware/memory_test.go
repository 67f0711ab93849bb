package middleware

import (
	"context"
	"errors"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/budget"
)

// The share for answers is a quarter of the budget.
const (
	memoryBudget = 4000
	answersShare = memoryBudget / 4
)

// reserving opens a hook whose transport reserves bytes for each answer and never releases them.
func reserving(t *testing.T, b *budget.Budget, bytes int64) hook.Hook {
	t.Helper()
	return open(t, Config{Memory: b.Share(budget.Decoding)}, func(c hook.Config) (*hook.Opened, error) {
		return &hook.Opened{Address: "tcp:hello", Hook: hook.Func(
			func(ctx context.Context, _ *hook.Question) (*hook.Answer, error) {
				if _, err := c.Reserve(ctx, bytes); err != nil {
					return nil, err
				}
				return &hook.Answer{}, nil
			})}, nil
	})
}

func TestMemoryIsHeldUntilTheSyncEnds(t *testing.T) {
	b := budget.New(memoryBudget)
	h := reserving(t, b, 600)
	ctx, end := hook.Holding(t.Context())
	if _, err := h.Ask(ctx, &hook.Question{Op: hook.Sync}); err != nil {
		t.Fatal(err)
	}
	if used := b.Share(budget.Decoding).Usage().Bytes; used != 600 {
		t.Errorf("%d bytes are in use during the sync, want 600", used)
	}
	end()
	if used := b.Share(budget.Decoding).Usage().Bytes; used != 0 {
		t.Errorf("%d bytes are in use after the sync, want none", used)
	}
}

func TestMemoryThatIsNotThereFailsTheQuestion(t *testing.T) {
	b := budget.New(memoryBudget)
	ctx, end := hook.Holding(t.Context())
	defer end()
	answer, err := reserving(t, b, answersShare+1).Ask(ctx, &hook.Question{Op: hook.Sync})
	var failed *hook.Error
	if answer != nil || !errors.As(err, &failed) {
		t.Fatalf("got %v and %v, want a *hook.Error alone", answer, err)
	}
	if failed.Kind != hook.Failed || failed.Reason != "MemoryBudget" || failed.Hook != "sync tcp:hello" {
		t.Errorf("got kind %s, reason %q, hook %q; want %s, MemoryBudget, sync tcp:hello",
			failed.Kind, failed.Reason, failed.Hook, hook.Failed)
	}
}

func TestANegativeReservationIsAFaultOfTheTransport(t *testing.T) {
	_, err := reserving(t, budget.New(memoryBudget), -1).Ask(t.Context(), &hook.Question{Op: hook.Sync})
	if hook.ErrorKindOf(err) != hook.Failed {
		t.Errorf("got %v, want an error of kind %s", err, hook.Failed)
	}
}

func TestMemoryCanBeReleasedEarlyAndTwice(t *testing.T) {
	b := budget.New(memoryBudget)
	c := hook.Config{Memory: memory{b.Share(budget.Decoding)}}
	ctx, end := hook.Holding(t.Context())
	release, err := c.Reserve(ctx, 600)
	if err != nil {
		t.Fatal(err)
	}
	release()
	release()
	end()
	if used := b.Share(budget.Decoding).Usage().Bytes; used != 0 {
		t.Errorf("%d bytes are in use, want none", used)
	}
}
