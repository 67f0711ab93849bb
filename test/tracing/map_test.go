package tracing

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/change"
	reading "github.com/hookloop/hookloop/internal/jaeger"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/jaeger"
	"github.com/hookloop/hookloop/test/kit"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// texts answers one ConfigMap for each input, with a text of the parent and one of the input.
func texts(r kit.Request) any {
	input := unstructured.Unstructured{Object: r.Input}
	text, _, _ := unstructured.NestedString(r.Parent.Object, "spec", "text")
	return map[string]any{"outputs": []any{map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "of-" + input.GetName()},
		"data": map[string]any{"text": text + input.GetAnnotations()["text"]},
	}}}
}

// awaitTexts waits until the outputs have texts.
func awaitTexts(k *kit.Kit, want ...string) {
	k.Helper()
	k.Eventually("the outputs have their texts", func() error {
		var got []string
		for i := range want {
			if o := k.Find("v1/ConfigMap", fmt.Sprint("of-in-", i)); o != nil {
				text, _, _ := unstructured.NestedString(o.Object, "data", "text")
				got = append(got, text)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("-want +got:\n%s", diff)
		}
		return nil
	})
}

// TestChangeOfAMapParentIsOneTrace changes the parent of three inputs. Its trace has the syncs of
// all parts, and ends when they have converged. A change of an input is a trace of its own, with a
// link to that of the parent.
func TestChangeOfAMapParentIsOneTrace(t *testing.T) {
	k, j := start(t)
	k.CRD("Greeting", "Namespaced")
	k.RunMap(kit.Mapping{
		Parent: "greetings", Inputs: []string{"v1/secrets"}, Outputs: []string{"v1/configmaps InPlace"},
		Map: k.Hook(texts).URL, Labels: map[string]any{"engine": traced},
	})
	for i := range 3 {
		k.Apply(fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: in-%d, namespace: $NS}}", i))
	}
	k.Object("Greeting", "hello").Set("spec.text", "a").Apply()
	awaitTexts(k, "a", "a", "a")
	k.Settled(silence)

	mark := k.Mark()
	k.Patch("Greeting", "hello", "spec: {text: b}")
	awaitTexts(k, "b", "b", "b")
	k.Eventually("the status reports the change", func() error { // at most once a second
		n, _, _ := unstructured.NestedInt64(k.Get("Greeting", "hello").Object, "status", "observedGeneration")
		if n != 2 {
			return fmt.Errorf("observedGeneration is %d", n)
		}
		return nil
	})
	k.Settled(silence)
	id := changeOf(k, k.Get("Greeting", "hello"))
	trace, err := j.Await(k.Context(), id.Trace.String(), func(t *reading.Trace) bool {
		return len(t.Named("change")) > 0 && len(t.Writes()) >= 3
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(reading.Tree(trace))
	checkRoot(t, trace, id)
	var parts []string
	for _, sync := range trace.Named("sync") {
		if part := sync.Tags["hookloop.part"]; part != "" && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	slices.Sort(parts)
	prefix := "Secret/" + k.Namespace + "/in-"
	want := []string{prefix + "0", prefix + "1", prefix + "2"}
	if diff := cmp.Diff(want, parts); diff != "" {
		t.Errorf("parts in the trace (-want +got):\n%s", diff)
	}
	tags := trace.Named("change")[0].Tags
	if tags["hookloop.parts.total"] != "3" || tags["hookloop.parts.failed"] != "0" {
		t.Errorf("the change has the attributes %v, want 3 parts, none failed", tags)
	}
	outputs := slices.DeleteFunc(k.Writes(mark), func(w cluster.Write) bool { return w.Resource != "configmaps" })
	if len(outputs) != 3 {
		t.Errorf("%d writes of outputs, want 3", len(outputs))
	}

	mark = k.Mark()
	k.Patch("v1/Secret", "in-1", "metadata: {annotations: {text: c}}")
	awaitTexts(k, "b", "bc", "b")
	k.Settled(silence)
	checkInputChange(t, k, j, id, k.Writes(mark))
}

// checkInputChange checks that the writes after a change of the input in-1 are in one trace of its
// part, with a link to the change of the parent.
func checkInputChange(t *testing.T, k *kit.Kit, j *jaeger.Jaeger, id change.ID, writes []cluster.Write) {
	t.Helper()
	var found []*reading.Trace
	k.Eventually("the trace of the input", func() error {
		linked, err := j.Find(k.Context(), reading.Search{
			Service: "hookloop", Tags: map[string]string{"hookloop.part": "Secret/" + k.Namespace + "/in-1"},
		})
		if err != nil {
			return err
		}
		found = slices.DeleteFunc(linked, func(t *reading.Trace) bool { return !linksTo(t, id) })
		if len(found) == 0 || len(found[0].Writes()) == 0 {
			return fmt.Errorf("%d traces link to the change", len(found))
		}
		return nil
	})
	if len(found) != 1 || found[0].ID == id.Trace.String() || len(found[0].Named("change")) > 0 {
		t.Fatalf("the input has %d traces, want one of its own:\n%s", len(found), reading.Tree(found[0]))
	}
	checkWrites(t, found, writes)
}
