package integration

import (
	"errors"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/test/kit"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

type unmetered struct{}

func (unmetered) Wrote(string, string) {}

// TestObjectOfAnEarlierParent has a child with a name that an object of an earlier parent of the
// same name has. Its owner reference has a version that is not served, so that Kubernetes' garbage
// collector cannot decide either. The parent's message names both. When the parent is old enough,
// the object is deleted and the child created.
func TestObjectOfAnEarlierParent(t *testing.T) {
	k := start(t)
	run(t, k, kit.Composite{})
	k.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: page, namespace: $NS, ownerReferences: [
		{apiVersion: $GROUP/v0, kind: Web, name: web, uid: before, controller: true}]}, data: {text: theirs}}`)
	k.Apply(parent("web", page("page", "text: ours")))
	k.AwaitFault("Web", "web", "ChildNameTaken",
		`is controlled by an earlier Web "web" with the UID before, not by the present one`)
	if got := field(k, "v1/ConfigMap", "page", "data.text"); got != "theirs" {
		t.Errorf("the object of the earlier parent has %q", got)
	}

	config := rest.CopyConfig(k.Cluster.Admin())
	config.UserAgent = kit.UserAgent
	web := k.Get("Web", "web")
	writer, err := act.NewWriter(act.Config{ // an engine's writer, a minute later
		Config: config, Tracer: noop.NewTracerProvider().Tracer(""), Meter: unmetered{},
		Clock: clocktesting.NewFakePassiveClock(web.GetCreationTimestamp().Add(time.Minute)),
	})
	if err != nil {
		t.Fatal(err)
	}
	maps := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	_, err = writer.Do(t.Context(), plan.Action{
		Verb:     plan.Create,
		Resource: object.Resource{GVK: maps, Plural: "configmaps", Namespaced: true},
		Ref:      object.Ref{GVK: maps, Namespace: k.Namespace, Name: "page"},
		Body: map[string]any{
			"apiVersion": "v1",
			"kind":       "ConfigMap",
			"metadata":   map[string]any{"name": "page", "namespace": k.Namespace},
		},
		Owner: plan.Owner{
			GVK: web.GroupVersionKind(), Name: "web", UID: web.GetUID(),
			Resource: object.Resource{GVK: web.GroupVersionKind(), Plural: "webs", Namespaced: true},
		},
	})
	if !errors.As(err, new(*act.CollectedError)) {
		t.Fatalf("Do = %v, want that the object is deleted", err)
	}
	await(k, "v1/ConfigMap", "page", "data.text", "ours")
}
