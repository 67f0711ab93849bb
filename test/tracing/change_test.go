package tracing

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/change"
	reading "github.com/hookloop/hookloop/internal/jaeger"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/jaeger"
	"github.com/hookloop/hookloop/test/kit"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// silence is the time without writes after which a story has ended.
const silence = 500 * time.Millisecond

// TestChangeIsOneTrace changes one object. Its trace has all spans of the change, and a later
// repair of drift is a separate trace.
func TestChangeIsOneTrace(t *testing.T) {
	k, j := start(t)
	greetings(k, traced, helloGRPC(k, j.Env()...))
	greet(k, "World")
	k.Settled(silence)

	mark := k.Mark()
	greet(k, "Kubernetes")
	k.Settled(silence)
	id := changeOf(k, k.Get("Greeting", "hello"))
	trace := await(k, j, id, len(k.Writes(mark)))
	t.Log(reading.Tree(trace))
	if diff := cmp.Diff([]string{"hello-grpc", "hookloop"}, trace.Services()); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
	}
	checkRoot(t, trace, id)
	for _, sync := range trace.Named("sync") {
		checkSync(t, trace, sync, id)
	}
	checkWrites(t, []*reading.Trace{trace}, k.Writes(mark))

	mark = k.Mark()
	uid := k.Get("v1/Service", "hello").GetUID()
	k.Delete("v1/Service", "hello")
	k.Eventually("the Service is back", func() error {
		if o := k.Find("v1/Service", "hello"); o == nil || o.GetUID() == uid {
			return fmt.Errorf("it is %v", o)
		}
		return nil
	})
	k.Settled(silence)
	checkRepair(t, k, j, id, k.Writes(mark))
}

// changeOf derives the ids of a change from the cluster, the object's UID and its generation, as
// any observer can.
func changeOf(k *kit.Kit, parent *unstructured.Unstructured) change.ID {
	k.Helper()
	return change.Of(k.Get("v1/Namespace", "kube-system").GetUID(), parent.GetUID(), parent.GetGeneration())
}

// await waits until Jaeger has a change's trace: its root, at least as many writes as the audit
// log, and the hook's spans for each question.
func await(k *kit.Kit, j *jaeger.Jaeger, id change.ID, writes int) *reading.Trace {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), kit.Deadline)
	defer cancel()
	trace, err := j.Await(ctx, id.Trace.String(), func(t *reading.Trace) bool {
		complete := len(t.Named("change")) > 0 && len(t.Writes()) >= writes
		for _, ask := range t.Named("ask") {
			complete = complete && len(ofHook(t, ask)) > 0
		}
		return complete
	})
	if err != nil {
		if trace != nil {
			k.Log(reading.Tree(trace))
		}
		k.Fatalf("want %d writes: %v", writes, err)
	}
	return trace
}

// checkRoot checks that the root is one span with the derived id, and that all below it are syncs,
// none of which begins before it.
func checkRoot(t *testing.T, trace *reading.Trace, id change.ID) {
	t.Helper()
	roots := trace.Children("")
	if len(roots) != 1 || !roots[0].Is("change") || roots[0].ID != id.Root.String() {
		t.Fatalf("the roots are %+v, want one change with the id %s", roots, id.Root)
	}
	for _, s := range trace.Children(roots[0].ID) {
		if !s.Is("sync") {
			t.Errorf("below the change is %s, want syncs only", s.Operation)
		}
		if s.Start.Before(roots[0].Start) {
			t.Errorf("a sync begins at %s, before its change at %s", s.Start, roots[0].Start)
		}
	}
}

// stages is the order of a sync's stages.
var stages = []string{"observe", "ask Sync", "plan", "act", "report"}

// checkSync checks that a sync belongs to the change, has its stages as children in order, with
// writes below act or report, and the hook's own span, which begins within ask.
func checkSync(t *testing.T, trace *reading.Trace, sync reading.Span, id change.ID) {
	t.Helper()
	if sync.Parent != id.Root.String() {
		t.Errorf("a sync's parent is %s, want the change", sync.Parent)
	}
	var names []string
	for _, stage := range trace.Children(sync.ID) {
		names = append(names, stage.Operation)
		checkStage(t, trace, stage)
	}
	want := slices.Clone(stages)
	if !slices.Contains(names, "act") { // nothing to write
		want = slices.DeleteFunc(want, func(s string) bool { return s == "act" })
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("the stages of a sync (-want +got):\n%s", diff)
	}
}

func checkStage(t *testing.T, trace *reading.Trace, stage reading.Span) {
	t.Helper()
	below := trace.Children(stage.ID)
	switch stage.Operation {
	case "ask Sync":
		spans := ofHook(trace, stage)
		if len(spans) != 1 {
			t.Errorf("below ask the hook has the spans %+v, want one", spans)
		}
		for _, s := range spans {
			// It may end after ask: a server ends its span when the transport has its answer.
			if s.Start.Before(stage.Start) || s.Start.After(stage.End()) {
				t.Errorf("the hook's span begins at %s, want within ask, %s to %s", s.Start, stage.Start, stage.End())
			}
		}
	case "act", "report":
		if slices.ContainsFunc(below, func(s reading.Span) bool { return !s.IsWrite() }) {
			t.Errorf("below %s is %+v, want writes only", stage.Operation, below)
		}
	default:
		if len(below) > 0 {
			t.Errorf("below %s is %+v, want nothing", stage.Operation, below)
		}
	}
}

// ofHook returns the hook process's spans below a span; the engine's own span of the call is
// between.
func ofHook(trace *reading.Trace, span reading.Span) []reading.Span {
	var found []reading.Span
	for _, s := range trace.Children(span.ID) {
		if s.Service == "hello-grpc" {
			found = append(found, s)
		}
		found = append(found, ofHook(trace, s)...)
	}
	return found
}

// requests maps the engine's verbs to the API server's.
var requests = map[string]string{
	"create": "create", "update": "update", "delete": "delete", "status": "patch",
	"adopt": "patch", "release": "patch", "add-finalizer": "patch", "remove-finalizer": "patch",
}

// checkWrites compares the successful writes in traces with those in the audit log, one to one.
func checkWrites(t *testing.T, traces []*reading.Trace, seen []cluster.Write) {
	t.Helper()
	var want, got []string
	for _, w := range seen {
		if w.Code < 300 {
			want = append(want, w.Verb+" "+w.Resource+"."+w.Group+" "+w.Namespace+"/"+w.Name)
		}
	}
	for _, trace := range traces {
		for _, s := range trace.Writes() {
			if s.Tags["hookloop.write.result"] == "ok" {
				got = append(got, written(s))
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) == 0 {
		t.Error("the audit log saw no write")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes (-audit log +traces):\n%s", diff)
	}
}

// written returns a write's span in the form of the audit log.
func written(s reading.Span) string {
	plural, groupVersion, _ := strings.Cut(s.Tags["hookloop.write.resource"], ".")
	group, _, grouped := strings.Cut(groupVersion, "/")
	if !grouped {
		group = ""
	}
	verb := requests[s.Tags["hookloop.write.verb"]]
	return fmt.Sprintf("%s %s.%s %s/%s", verb, plural, group, s.Tags["k8s.namespace.name"], s.Tags["hookloop.write.name"])
}

// checkRepair checks that writes after convergence are in traces of their own, each with a link to
// the change.
func checkRepair(t *testing.T, k *kit.Kit, j *jaeger.Jaeger, id change.ID, writes []cluster.Write) {
	t.Helper()
	var repairs []*reading.Trace
	k.Eventually("the repair's traces", func() error {
		found, err := j.Find(k.Context(), reading.Search{
			Service: "hookloop", Tags: map[string]string{"k8s.namespace.name": k.Namespace, "hookloop.parent.name": "hello"},
		})
		if err != nil {
			return err
		}
		repairs = slices.DeleteFunc(found, func(t *reading.Trace) bool { return !linksTo(t, id) })
		n := 0
		for _, t := range repairs {
			n += len(t.Writes())
		}
		if n < len(writes) {
			return fmt.Errorf("%d of %d writes in %d traces that link to the change", n, len(writes), len(repairs))
		}
		return nil
	})
	checkWrites(t, repairs, writes)
	for _, r := range repairs {
		if len(r.Writes()) == 0 && len(r.Named("sync")) > 0 {
			t.Errorf("a sync that changed nothing is exported:\n%s", reading.Tree(r))
		}
		if r.ID == id.Trace.String() || len(r.Named("change")) > 0 {
			t.Errorf("a repair is in the change's trace:\n%s", reading.Tree(r))
		}
	}
}

// linksTo reports whether a trace's root links to a change.
func linksTo(t *reading.Trace, id change.ID) bool {
	want := reading.Link{TraceID: id.Trace.String(), SpanID: id.Root.String()}
	return slices.ContainsFunc(t.Children(""), func(s reading.Span) bool { return slices.Contains(s.Links, want) })
}
