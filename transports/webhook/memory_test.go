package webhook

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/budget"
)

// limited opens a webhook with a memory limit.
func limited(t *testing.T, b *budget.Budget, field string) *hook.Opened {
	t.Helper()
	opened, err := (&Transport{Memory: b}).Open(settings("v2", field))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return opened
}

// filled returns JSON of a given size that repeats an item.
func filled(before, item, after string, size int) string {
	return before + strings.Repeat(item+",", (size-len(before)-len(after))/(len(item)+1)-1) + item + after
}

// TestBombsAreRefused sends lists of empty items. They are rejected before they are decoded,
// regardless of their names, and no memory stays reserved.
func TestBombsAreRefused(t *testing.T) {
	for name, body := range map[string]string{
		"conditions":      filled(`{"conditions":[`, `{}`, `]}`, 8<<20),
		"escaped":         filled(`{"\u0063onditions":[`, `{}`, `]}`, 8<<20),
		"events":          filled(`{"events":[`, `{}`, `]}`, 8<<20),
		"results":         filled(`{"results":[`, `{}`, `]}`, 8<<20),
		"requirements":    filled(`{"requirements":[`, `{}`, `]}`, 8<<20),
		"childStates":     filled(`{"childStates":[`, `{}`, `]}`, 8<<20),
		"dependsOn":       filled(`{"childStates":[{"dependsOn":[`, `{}`, `]}]}`, 8<<20),
		"children":        filled(`{"children":[`, `{}`, `]}`, 8<<20),
		"inside a child":  filled(`{"children":[{"data":[`, `{}`, `]}]}`, 8<<20),
		"inside a status": filled(`{"status":{"a":[`, `[]`, `]}}`, 8<<20),
		"unknown fields":  filled(`{"unknown":[`, `{}`, `]}`, 8<<20),
	} {
		t.Run(name, func(t *testing.T) {
			b := budget.New(256 << 20)
			_, err := limited(t, b, string(field(serve(t, status(http.StatusOK, body)).URL, ""))).Ask(t.Context(), observed(t))
			if hook.ErrorKindOf(err) != hook.Invalid ||
				!strings.Contains(err.Error(), "the answer: takes more than 67108864 bytes of memory") {
				t.Errorf("got %v, want a refusal", err)
			}
			if u := b.Share(budget.Decoding).Usage(); u.Bytes != 0 {
				t.Errorf("%d bytes are still reserved", u.Bytes)
			}
		})
	}
}

// TestMemoryIsHeldUntilTheSyncEnds rejects a second answer while a sync uses the first.
func TestMemoryIsHeldUntilTheSyncEnds(t *testing.T) {
	b := budget.New(32 << 20)
	body := `{"status":{"a":"` + strings.Repeat("x", 3<<20) + `"}}`
	for _, chunked := range []bool{false, true} {
		serve := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if chunked {
				w.(http.Flusher).Flush()
			}
			_, _ = io.WriteString(w, body)
		}))
		opened := limited(t, b, string(field(serve.URL, "")))
		ctx, end := hook.Holding(t.Context())
		if _, err := opened.Ask(ctx, observed(t)); err != nil {
			t.Fatal(err)
		}
		if u := b.Share(budget.Decoding).Usage(); u.Bytes < 6<<20 {
			t.Errorf("%d bytes are reserved, want at least two copies", u.Bytes)
		}
		_, err := opened.Ask(ctx, observed(t))
		failure, ok := err.(*hook.Error) //nolint:errorlint // the port returns the type itself
		if !ok || failure.Reason != "MemoryBudget" || !strings.Contains(err.Error(), "--memory-budget") {
			t.Errorf("a second answer: got %v, want reason MemoryBudget", err)
		}
		end()
		if u := b.Share(budget.Decoding).Usage(); u.Bytes != 0 || u.Refused == 0 {
			t.Errorf("after the sync: %+v", u)
		}
		if _, err := opened.Ask(t.Context(), observed(t)); err != nil {
			t.Errorf("after the sync: %v", err)
		}
	}
}

// TestWaitingForMemoryEndsWithTheCaller passes on the caller's own cancellation.
func TestWaitingForMemoryEndsWithTheCaller(t *testing.T) {
	b := budget.New(32 << 20)
	opened := limited(t, b, string(field(serve(t, status(http.StatusOK, "{}")).URL, "1s")))
	if err := b.Share(budget.Decoding).TryAcquire(8 << 20); err != nil {
		t.Fatal(err)
	}
	_, err := opened.Ask(t.Context(), observed(t))
	if err == nil || !strings.Contains(err.Error(), "memory budget") {
		t.Errorf("at the timeout: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	//nolint:errorlint // the port returns it itself
	if _, err := opened.Ask(ctx, observed(t)); err != context.Canceled {
		t.Errorf("cancelled: got %v", err)
	}
}

// TestCachedAnswersAreEvicted evicts answers of the ETag caches when the share of all hooks is used
// up.
func TestCachedAnswersAreEvicted(t *testing.T) {
	b := budget.New(24 << 20)
	serve := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size, _ := strconv.Atoi(r.URL.Query().Get("size"))
		w.Header().Set("ETag", `"one"`)
		_, _ = fmt.Fprintf(w, `{"status":{"a":%q}}`, strings.Repeat("x", size))
	}))
	for _, size := range []int{700 << 10, 400 << 10} {
		opened := limited(t, b, fmt.Sprintf(`{"url":"%s/?size=%d","etag":{"enabled":true}}`, serve.URL, size))
		if _, err := opened.Ask(t.Context(), observed(t)); err != nil {
			t.Fatal(err)
		}
	}
	if u := b.Share(budget.Answers).Usage(); u.Bytes < 400<<10 || u.Bytes > u.Limit || u.Evicted < 700<<10 {
		t.Errorf("answers of 700 and 400 KiB: %+v", u)
	}
}

// TestStalledAnswers starts large answers of one hook that never end. Other hooks still get their
// answers.
func TestStalledAnswers(t *testing.T) {
	const calls = 6
	for name, begin := range map[string]func(http.ResponseWriter){
		"announced": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", strconv.Itoa(MaxAnswerBytes))
		},
		"sent": func(w http.ResponseWriter) { _, _ = w.Write(make([]byte, MaxAnswerBytes*3/4)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := budget.New(256 << 20)
			begun := make(chan struct{}, calls)
			stalls := limited(t, b, string(field(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				begun <- struct{}{}
				begin(w)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			})).URL, "1m")))
			ctx, cancel := context.WithCancel(t.Context())
			var asking sync.WaitGroup
			for range calls {
				asking.Go(func() { _, _ = stalls.Ask(ctx, observed(t)) })
			}
			defer asking.Wait()
			defer cancel()
			for range calls {
				<-begun
			}
			other := limited(t, b,
				string(field(serve(t, status(http.StatusOK, `{"status":{"a":"`+strings.Repeat("x", 1<<20)+`"}}`)).URL, "20s")))
			if _, err := other.Ask(t.Context(), observed(t)); err != nil {
				t.Error(err)
			}
			if u := b.Share(budget.Decoding).Usage(); u.Refused > 0 || u.Bytes > u.Limit/2 {
				t.Errorf("one hook takes %d of %d bytes, %d refused", u.Bytes, u.Limit, u.Refused)
			}
		})
	}
}
