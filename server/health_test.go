package server

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
)

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read to its end
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// serve starts a listener on a free port; the test's end stops it and waits.
func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	group, ctx := errgroup.WithContext(ctx)
	address, err := listener{"test-address", "127.0.0.1:0", handler}.start(ctx, group)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return "http://" + address.String()
}

// probedEngine is an engine that only probes look at.
type probedEngine struct {
	fakeEngine
	warmed   bool
	ready    bool
	problems []string
}

func (e *probedEngine) Warmed() bool       { return e.warmed }
func (e *probedEngine) Ready() bool        { return e.ready }
func (e *probedEngine) Problems() []string { return e.problems }

func TestHealth(t *testing.T) {
	var h health
	url := serve(t, h.handler())
	var e probedEngine
	for _, step := range []struct {
		name   string
		change func()
		code   int
		text   string
	}{
		{"at first", func() {}, 503, "starting\n"},
		{"standing by", h.standby, 200, "standing by for leadership\n"},
		{"standing by, caches not filled", func() { h.warming(&e) }, 503,
			"standing by for leadership; caches are being filled\n"},
		{"standing by, caches filled", func() { e.warmed = true }, 200, "standing by for leadership; caches are filled\n"},
		{"working, caches not filled", func() { h.working(&e) }, 503, "caches are being filled\n"},
		{"caches filled", func() { e.ready = true }, 200, "ok\n"},
		{"a controller does not run", func() { e.problems = []string{"a", "b"} }, 200, "ok\na\nb\n"},
		{"stopping", h.stopping, 503, "stopping\n"},
	} {
		step.change()
		code, text := get(t, url+"/readyz")
		if code != step.code || text != step.text {
			t.Errorf("%s: /readyz says %d %q, want %d %q", step.name, code, text, step.code, step.text)
		}
		if code, _ := get(t, url+"/healthz"); code != 200 {
			t.Errorf("%s: /healthz says %d", step.name, code)
		}
	}
}

func TestListenerSaysWhichFlag(t *testing.T) {
	group, ctx := errgroup.WithContext(context.Background())
	_, err := listener{"metrics-address", "256.0.0.1:1", http.NotFoundHandler()}.start(ctx, group)
	if err == nil {
		t.Fatal("no error, want one about the address")
	}
	if diff := cmp.Diff("--metrics-address: listen on 256.0.0.1:1: ",
		err.Error()[:len("--metrics-address: listen on 256.0.0.1:1: ")]); diff != "" {
		t.Error(diff)
	}
}

func TestPprof(t *testing.T) {
	if code, _ := get(t, serve(t, pprofHandler())+"/debug/pprof/cmdline"); code != 200 {
		t.Errorf("got %d, want 200", code)
	}
}
