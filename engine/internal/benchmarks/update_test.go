package benchmarks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/report"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// accepting is an API server that accepts each write of a child and answers the object as it would
// store it, and the parent to each write of the parent. It stores nothing.
type accepting struct{ parent []byte }

// RoundTrip implements http.RoundTripper.
func (a accepting) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(r.URL.Path, "deployments") {
		body = a.parent
	}
	return accepted(r, body), nil
}

// accepted is the API server's response to a write, with the stored object.
func accepted(r *http.Request, body []byte) *http.Response {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/2.0", ProtoMajor: 2, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// newUpdate returns a function that runs one sync in which the hook's answer is new: it writes the
// children and the parent's status. The observed objects stay as they are.
func newUpdate(b testing.TB) func() {
	b.Helper()
	w := converged(b)
	heard := &silent{}
	round := 0
	ask := func(context.Context, *hook.Question) (*hook.Answer, error) {
		round++
		a := &hook.Answer{Status: json.RawMessage(fmt.Sprintf(`{"ready":%d}`, round+3))}
		for i := range children {
			child := fmt.Sprintf(desired, i)
			a.Children = append(a.Children, json.RawMessage(strings.Replace(child, "1.27", fmt.Sprint("1.", round+27), 1)))
		}
		return a, nil
	}
	p := newPipeline(b, w, &hook.Opened{Hook: hook.Func(ask), Address: "inproc:web"}, heard)
	writer, err := act.NewWriter(act.Config{
		Config: &rest.Config{Host: "http://127.0.0.1:1", QPS: -1, Transport: accepting{slices.Clone(w.parent.Raw())}},
		Tracer: p.Tracer, Meter: heard, Clock: clock.RealClock{},
	})
	if err != nil {
		b.Fatal(err)
	}
	p.Writer, p.Status = writer, report.NewStatus(writer)
	item := queue.Item[hook.Key]{
		Key: hook.ParentKey(w.parent.Ref()), Count: 1,
		Causes: []queue.Cause{{Kind: queue.CauseParent, Ref: w.parent.Ref(), ResourceVersion: "1"}},
	}
	return func() {
		if _, err := p.Reconcile(b.Context(), item); err != nil || heard.last.Result != "changed" {
			b.Fatalf("Reconcile = %v, %+v, want changed", err, heard.last)
		}
	}
}

// BenchmarkUpdateSync is one sync that writes all three children and the parent's status, without
// the network.
func BenchmarkUpdateSync(b *testing.B) {
	sync := newUpdate(b)
	b.ReportAllocs()
	for b.Loop() {
		sync()
	}
}
