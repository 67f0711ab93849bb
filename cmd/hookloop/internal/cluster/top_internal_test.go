package cluster

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/top"
	"github.com/hookloop/hookloop/internal/lastsync"
	"k8s.io/client-go/rest"
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

// TestTopLeavesOutOtherPods asks three Pods with the engine's label: an engine, another program,
// and one that does not answer.
func TestTopLeavesOutOtherPods(t *testing.T) {
	replies := map[string]string{
		"/metrics":    "# TYPE hookloop_build_info gauge\nhookloop_build_info{version=\"v1\"} 1\n",
		lastsync.Path: `{"syncs":[{}]}`,
	}
	const pods = "/api/v1/namespaces/shop/pods"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pod, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, pods+"/"), ":9999/proxy")
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		switch {
		case r.URL.Path == pods:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","items":[
				{"metadata":{"namespace":"shop","name":"web"}},
				{"metadata":{"namespace":"shop","name":"engine"}},
				{"metadata":{"namespace":"shop","name":"down"}}]}`)
		case pod == "http:web":
			_, _ = io.WriteString(w, "# TYPE hookloop_cache_objects gauge\nhookloop_cache_objects{resource=\"x\"} 9\n")
		case pod == "http:engine":
			_, _ = io.WriteString(w, replies[path])
		default:
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer server.Close()
	e, err := newEngines(Engine{Namespace: "shop"}, &rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.scrape(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table := top.Between(s, s)
	if len(table.LeftOut) != 2 || table.LeftOut[0].Pod != "shop/web" || table.LeftOut[1].Pod != "shop/down" {
		t.Errorf("left out %+v, expected the Pods web and down", table.LeftOut)
	}
	text := table.Text()
	for _, want := range []string{
		"1 engine, version v1, 0.0 writes/s; cache 0 B in 0 objects;",
		"\n! Pod shop/web is left out: the response has no metric hookloop_build_info: it is not an engine's\n",
		"\n! Pod shop/down is left out: does not answer through the API server (it needs the right \"get\" on pods/proxy): ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("expected %q in\n%s", want, text)
		}
	}
	syncs, err := (&Tracer{engines: e}).lastSyncs(t.Context(), "u")
	if err != nil || len(syncs) != 1 {
		t.Errorf("last syncs: got %v, %v, expected that of the engine", syncs, err)
	}
}
