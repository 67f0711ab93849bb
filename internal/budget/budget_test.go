package budget_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/internal/budget"
)

const total = 2400

func exhausted(t *testing.T, err error, needed int64) {
	t.Helper()
	var e *budget.ExhaustedError
	if !errors.As(err, &e) || e.Needed != needed {
		t.Errorf("got %v, want an ExhaustedError for %d bytes", err, needed)
	}
}

// TestWithoutALimitNothingIsRefused has no budget, and then one that only counts.
func TestWithoutALimitNothingIsRefused(t *testing.T) {
	var none *budget.Budget
	s := none.Share(budget.Decoding)
	account := s.Join(nil)
	account.Set(1 << 60)
	if err := errors.Join(s.Acquire(t.Context(), 1<<60), s.TryAcquire(1<<60)); err != nil {
		t.Error(err)
	}
	s.Release(1 << 60)
	s.Balance()
	account.Close()
	none.Report(1)
	if none.Usage() != nil || none.Limit() != 0 {
		t.Error("no budget has a limit")
	}
}

// TestWithoutALimitIsCounted holds and takes more than any machine has.
func TestWithoutALimitIsCounted(t *testing.T) {
	b := budget.New(0)
	b.Report(1 << 60)
	plans := b.Share(budget.Plans)
	decoding := b.Share(budget.Decoding)
	account := plans.Join(func(int64) { t.Error("an account is shrunk without a limit") })
	account.Set(1 << 61)
	plans.Balance()
	if err := errors.Join(decoding.Acquire(t.Context(), 1<<60), decoding.TryAcquire(1<<60)); err != nil {
		t.Error(err)
	}
	for part, want := range map[budget.Part]int64{
		budget.Plans: 1 << 61, budget.Decoding: 1 << 61, budget.Caches: 1 << 60, budget.Answers: 0,
	} {
		if diff := cmp.Diff(budget.Usage{Part: part, Bytes: want, Limit: budget.NoLimit}, b.Share(part).Usage()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	decoding.Release(1 << 61)
	account.Close()
	if held, taken := b.Share(budget.Plans).Usage().Bytes, b.Share(budget.Decoding).Usage().Bytes; held+taken != 0 {
		t.Errorf("%d bytes are held and %d taken, want none", held, taken)
	}
	if b.Limit() != 0 || decoding.MessageLimit() != budget.MessageBytes {
		t.Errorf("limit %d, of a message %d, want none and %d", b.Limit(), decoding.MessageLimit(), budget.MessageBytes)
	}
}

// TestWhoHoldsDoesNotWait refuses a lease immediately to a caller that holds one, because two such
// callers could deadlock.
func TestWhoHoldsDoesNotWait(t *testing.T) {
	s := budget.New(total).Share(budget.Decoding)
	first, err := s.Lease(t.Context(), 500, false)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Lease(t.Context(), 500, true)
	exhausted(t, err, 500)
	first.Release()
	if _, err := s.Lease(t.Context(), 500, true); err != nil {
		t.Error(err)
	}
}

// TestClosedAccountHoldsNothing calls Set on a closed account, as a concurrent shrink may.
func TestClosedAccountHoldsNothing(t *testing.T) {
	b := budget.New(total)
	account := b.Share(budget.Sessions).Join(func(int64) {})
	account.Set(100)
	account.Close()
	account.Set(50)
	if used := b.Share(budget.Sessions).Usage().Bytes; used != 0 {
		t.Errorf("%d bytes are held, want none", used)
	}
}

// TestAcquireWaits makes the second caller wait for the first, until its deadline.
func TestAcquireWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(total)
		s := b.Share(budget.Decoding)
		if err := s.Acquire(t.Context(), 500); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Second)
			s.Release(500)
		}()
		if err := s.Acquire(t.Context(), 600); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		exhausted(t, s.Acquire(ctx, 1), 1)
		exhausted(t, s.TryAcquire(2), 2)
		exhausted(t, s.Acquire(t.Context(), 601), 601)
		cancel()
		gone, leave := context.WithCancel(t.Context())
		leave()
		if err := s.Acquire(gone, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that has gone gets %v", err)
		}
		want := budget.Usage{Part: budget.Decoding, Bytes: 600, Limit: 600, Refused: 3}
		if diff := cmp.Diff(want, b.Share(budget.Decoding).Usage()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// TestAWaiterBlocksNobody lets a caller wait for more than is free. Others that fit are served
// before it, whether they wait or not, but not without end.
func TestAWaiterBlocksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := budget.New(40).Share(budget.Decoding) // of 10 bytes
		acquire := func(ctx context.Context, n int64) <-chan error {
			done := make(chan error, 1)
			go func() { done <- s.Acquire(ctx, n) }()
			synctest.Wait()
			return done
		}
		if err := s.TryAcquire(5); err != nil {
			t.Fatal(err)
		}
		large := acquire(t.Context(), 8)
		if err := s.TryAcquire(1); err != nil {
			t.Errorf("4 bytes are free behind the waiter: %v", err)
		}
		s.Release(1)
		for n := range 2 {
			small := acquire(t.Context(), 5)
			select {
			case err := <-small:
				if err != nil {
					t.Fatal(err)
				}
				s.Release(5)
			default:
				t.Fatalf("caller %d of 5 bytes waits behind the one of 8", n)
			}
		}
		gone, cancel := context.WithCancel(t.Context())
		late := acquire(gone, 1)
		if len(late) > 0 {
			t.Error("11 bytes have passed the waiter, want 10 at most")
		}
		last := acquire(t.Context(), 2)
		cancel()
		if err := <-late; !errors.Is(err, context.Canceled) {
			t.Errorf("the caller that has gone gets %v", err)
		}
		s.Release(5)
		if err := errors.Join(<-large, <-last); err != nil {
			t.Errorf("all bytes are free: %v", err)
		}
		exhausted(t, s.TryAcquire(1), 1)
	})
}

// TestAWaiterThatLeaves does not keep those behind it waiting.
func TestAWaiterThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := budget.New(40).Share(budget.Decoding) // of 10 bytes
		if err := s.TryAcquire(4); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan error, 3)
		go func() { results <- s.Acquire(ctx, 10) }()
		synctest.Wait()
		for range 2 {
			if err := s.Acquire(t.Context(), 5); err != nil { // 10 bytes pass
				t.Fatal(err)
			}
			s.Release(5)
		}
		go func() { results <- s.Acquire(t.Context(), 6) }()
		synctest.Wait()
		if len(results) > 0 {
			t.Fatalf("got %v, want both to wait", <-results)
		}
		cancel()
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("the first gets %v", err)
		}
		if err := <-results; err != nil {
			t.Errorf("the second gets %v", err)
		}
	})
}

// TestReleaseOfTooMuch panics, because a share that grows has no limit.
func TestReleaseOfTooMuch(t *testing.T) {
	s := budget.New(40).Share(budget.Decoding) // of 10 bytes
	if err := s.TryAcquire(5); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("6 of 5 bytes are released")
		}
	}()
	s.Release(6)
}

// holder is an account that drops data on request.
type holder struct {
	account *budget.Account
	needed  []int64
}

func join(s *budget.Share, bytes int64) *holder {
	h := &holder{}
	h.account = s.Join(func(limit int64) {
		h.needed = append(h.needed, limit)
		h.account.Set(limit)
	})
	h.account.Set(bytes)
	return h
}

// TestTheLargestShrink keeps small holders, and shrinks large ones to the same size.
func TestTheLargestShrink(t *testing.T) {
	b := budget.New(total)
	s := b.Share(budget.Sessions)
	small := join(s, 50)
	large := join(s, 200)
	larger := join(s, 300)
	s.Balance()
	if diff := cmp.Diff([][]int64{nil, {175}, {175}}, [][]int64{small.needed, large.needed, larger.needed}); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	s.Balance()
	if len(larger.needed) != 1 {
		t.Error("within the limit there is something to evict")
	}
	larger.account.Close()
	want := budget.Usage{Part: budget.Sessions, Bytes: 225, Limit: 400, Evicted: 150}
	if diff := cmp.Diff(want, b.Share(budget.Sessions).Usage()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestCachesTakeRoom shrinks the evictable shares when the caches grow, but never to zero.
func TestCachesTakeRoom(t *testing.T) {
	b := budget.New(total)
	h := join(b.Share(budget.Sessions), 400)
	b.Report(600)
	if h.needed != nil {
		t.Error("caches within their share take room from others")
	}
	b.Report(800)
	if diff := cmp.Diff([]int64{300}, h.needed); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	b.Report(100_000)
	if got := b.Share(budget.Sessions).Limit(); got != 100 {
		t.Errorf("the last quarter is %d, want 100", got)
	}
	if got := b.Share(budget.Caches).Usage(); got.Bytes != 100_000 || got.Refused != 0 {
		t.Errorf("caches: %+v", got)
	}
	if got := b.Share(budget.Decoding).Limit(); got != 600 {
		t.Errorf("decoding has %d, want 600", got)
	}
}
