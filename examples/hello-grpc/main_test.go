package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/sdk/go/hooktest"
)

// A test calls the hook like any function, without a server or a cluster.
func TestSyncMakesEverythingForAGreeting(t *testing.T) {
	parent := object{
		"apiVersion": "demo.example.com/v1", "kind": "Greeting",
		"metadata": object{"namespace": "shop", "name": "hi"},
		"spec":     object{"who": "World", "replicas": 2},
	}
	req, err := hook.NewSyncRequest(parent, nil, "Deployment.apps/v1")
	if err != nil {
		t.Fatal(err)
	}
	got, err := sync(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hooktest.Check(req, got, "ConfigMap.v1", "Service.v1", "Pod.v1"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(object{"greeting": "Hello, World!", "servers": 0}, got.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	var kinds []any
	for _, child := range got.Children {
		kinds = append(kinds, child.Object.(object)["kind"])
	}
	if diff := cmp.Diff([]any{"ConfigMap", "Deployment", "Service", "Pod"}, kinds); diff != "" {
		t.Errorf("kinds of children (-want +got):\n%s", diff)
	}
}
