package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/sdk/go/hooktest"
)

// ask asks the hook about a Website, with a Deployment if ready is given: ready is its number of
// ready Pods.
func ask(t *testing.T, html object, ready ...int) *hook.SyncResponse {
	t.Helper()
	meta := object{"name": "shop", "namespace": "web"}
	site := object{
		"apiVersion": "demo.example.com/v1",
		"kind":       "Website",
		"metadata":   meta,
		"spec":       object{"html": html, "replicas": 2},
	}
	var children []any
	for _, n := range ready {
		children = append(children,
			object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "status": object{"readyReplicas": n}})
	}
	req, err := hook.NewSyncRequest(site, children, "Deployment.apps/v1")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := sync(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hooktest.Check(req, answer, "ConfigMap.v1", "Service.v1"); err != nil {
		t.Error(err)
	}
	return answer
}

func TestASiteIsReadyWhenItsServersAre(t *testing.T) {
	for _, c := range []struct {
		name  string
		ready []int
		want  hook.Condition
	}{
		{"no Deployment", nil, hook.Condition{
			Type: "Ready", Status: hook.ConditionFalse, Reason: "Starting", Message: "0 of 2 servers are ready",
		}},
		{"one Pod is ready", []int{1}, hook.Condition{
			Type: "Ready", Status: hook.ConditionFalse, Reason: "Starting", Message: "1 of 2 servers are ready",
		}},
		{"both are", []int{2}, hook.Condition{
			Type: "Ready", Status: hook.ConditionTrue, Reason: "AllUp", Message: "2 of 2 servers are ready",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff([]hook.Condition{c.want}, ask(t, object{"a": "1"}, c.ready...).Conditions); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewPagesMakeNewPods(t *testing.T) {
	hashes := map[string]string{}
	for _, page := range []string{"1", "2", "2"} {
		hash := digest(map[string]string{"a": page, "b": "same"})
		if old, seen := hashes[page]; seen && old != hash {
			t.Errorf("page %q has the hashes %s and %s, expected one", page, old, hash)
		}
		hashes[page] = hash
	}
	if hashes["1"] == hashes["2"] {
		t.Errorf("different pages have the same hash %s", hashes["1"])
	}
	if got := len(ask(t, object{"a": "1"}).Children); got != 3 {
		t.Errorf("got %d children, want 3", got)
	}
}
