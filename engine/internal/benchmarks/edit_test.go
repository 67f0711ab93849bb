package benchmarks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// many is one child of a large parent in the hook's answer.
const many = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web-%d","namespace":"shop",` +
	`"labels":{"app":"web","controller-uid":"u"}},"spec":{"replicas":1,"text":"` + "%s" + `"}}`

// stored returns the i-th child as the API server has it in a version. An edited one has other
// replicas.
func stored(b testing.TB, i, version int, edited bool) *object.Object {
	b.Helper()
	text := fmt.Sprintf(many, i, strings.Repeat("0123456789", 90))
	body := decodeMap(b, text)
	metadata, _ := body["metadata"].(map[string]any)
	metadata["uid"], metadata["resourceVersion"] = fmt.Sprint("uid-", i), fmt.Sprint(version)
	metadata["annotations"] = map[string]any{object.LastAppliedAnnotation: text}
	metadata["ownerReferences"] = []any{map[string]any{
		"apiVersion": "example.com/v1", "kind": "Web", "name": "web", "uid": "u", "controller": true,
		"blockOwnerDeletion": true,
	}}
	if edited {
		body["spec"].(map[string]any)["replicas"] = int64(2)
	}
	o, err := object.FromMap(body)
	if err != nil {
		b.Fatal(err)
	}
	return o
}

// storing is an API server that accepts each write of a child as its next version, and passes the
// stored object on. It answers the parent to each write of the parent.
type storing struct {
	parent  []byte
	version int
	stored  *object.Object
}

// RoundTrip implements http.RoundTripper.
func (s *storing) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if strings.Contains(r.URL.Path, "deployments") {
		o, err := object.Decode(body)
		if err != nil {
			return nil, err
		}
		s.version++
		was := fmt.Sprintf(`"resourceVersion":%q`, o.ResourceVersion())
		is := fmt.Sprintf(`"resourceVersion":"%d"`, s.version)
		body = bytes.Replace(body, []byte(was), []byte(is), 1)
		s.stored, err = object.Decode(body)
		if err != nil {
			return nil, err
		}
	} else {
		body = s.parent
	}
	return accepted(r, body), nil
}

// source is a reader of two stores.
type source map[object.Resource]*view.Store

func (s source) View(r object.Resource) (view.View, error) { return s[r].View() }

// newEdit returns a function that edits one child of n and runs the two syncs that follow: the
// first one repairs the child, the second one finds no difference.
func newEdit(b testing.TB, n int, open func(testing.TB, *hook.Answer) *hook.Opened) func() {
	b.Helper()
	w := converged(b)
	heard := &silent{}
	same := &hook.Answer{Status: json.RawMessage(`{"ready":3}`)}
	children := make([]*object.Object, n)
	for i := range n {
		same.Children = append(same.Children, json.RawMessage(fmt.Sprintf(many, i, strings.Repeat("0123456789", 90))))
		children[i] = stored(b, i, i+2, false)
	}
	s := source{parents: view.NewStore(parents), deployments: view.NewStore(deployments)}
	s[parents].Replace([]*object.Object{w.parent}, "1")
	s[deployments].Replace(children, fmt.Sprint(n+2))
	p := newPipeline(b, w, open(b, same), heard)
	p.Reader = s
	server := &storing{parent: w.parent.Raw(), version: n + 2}
	writer, err := act.NewWriter(act.Config{
		Config: &rest.Config{Host: "http://127.0.0.1:1", QPS: -1, Transport: server},
		Tracer: p.Tracer, Meter: heard, Clock: clock.RealClock{},
	})
	if err != nil {
		b.Fatal(err)
	}
	p.Writer, p.Status = writer, report.NewStatus(writer)
	sync := func(want string, cause queue.Cause) {
		item := queue.Item[hook.Key]{Key: hook.ParentKey(w.parent.Ref()), Count: 1, Causes: []queue.Cause{cause}}
		if _, err := p.Reconcile(b.Context(), item); err != nil || heard.last.Result != want {
			b.Fatalf("Reconcile = %v, %+v, want %s", err, heard.last, want)
		}
	}
	changed := func(o *object.Object) queue.Cause {
		s[deployments].Put(o)
		return queue.Cause{Kind: queue.CauseChild, Ref: o.Ref(), ResourceVersion: o.ResourceVersion()}
	}
	sync("converged", queue.Cause{Kind: queue.CauseParent, Ref: w.parent.Ref(), ResourceVersion: "1"})
	round := 0
	return func() {
		server.version++
		round += 7
		sync("changed", changed(stored(b, round%n, server.version, true)))
		sync("converged", changed(server.stored))
	}
}

// edits are the transports by which an edit of one child of many is measured.
var edits = []struct {
	name string
	open func(testing.TB, *hook.Answer) *hook.Opened
}{
	{"stream", func(b testing.TB, a *hook.Answer) *hook.Opened { return openGRPC(b, "Stream", a) }},
	{"unary", func(b testing.TB, a *hook.Answer) *hook.Opened { return openGRPC(b, "Unary", a) }},
}

// BenchmarkEdit is an edit of one child of many, with the two syncs that follow, and with the work
// of the hook, which runs in the same process. The network to the API server is missing.
func BenchmarkEdit(b *testing.B) {
	for _, transport := range edits {
		for _, n := range []int{1000, 3000} {
			b.Run(fmt.Sprint(transport.name, "/", n), func(b *testing.B) {
				edit := newEdit(b, n, transport.open)
				b.ReportAllocs()
				for b.Loop() {
					edit()
				}
			})
		}
	}
}
