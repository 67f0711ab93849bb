package client

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookloop/hookloop/internal/top"
)

// TestTopGoesOn scrapes an engine that fails once, after the first scrape.
func TestTopGoesOn(t *testing.T) {
	var scrapes atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if scrapes.Add(1) == 2 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, "# TYPE hookloop_build_info gauge\nhookloop_build_info{version=\"v1\"} 1\n")
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var shown []bool
	show := func(table *top.Table, failed error) error {
		shown = append(shown, failed == nil)
		if table != nil {
			cancel()
		}
		return nil
	}
	err := Top(ctx, Target{}, Engine{MetricsURL: server.URL}, time.Millisecond, false, show)
	if err != nil || len(shown) != 2 || shown[0] || !shown[1] {
		t.Errorf("got %v and the tables %v, expected a failure and then a table", err, shown)
	}
}
