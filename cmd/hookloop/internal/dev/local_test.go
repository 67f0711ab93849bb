package dev

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/internal/proc"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestPlaneEnds ends the session when a process of the control plane ends, even without a fault.
func TestPlaneEnds(t *testing.T) {
	p, err := proc.Start(proc.Spec{Name: "etcd", Path: "/bin/echo", Args: []string{"bye"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := whileRunning(t.Context(), p)
	<-ctx.Done()
	if err := stop(); err == nil || !strings.Contains(err.Error(), "etcd has ended: exit status 0; its log ends: bye") {
		t.Errorf("got %v, expected that etcd has ended with exit status 0", err)
	}
}

// TestTransportOfAnotherProgram calls the webhook beside a transport that this program does not have,
// and otherwise names the controller and the field.
func TestTransportOfAnotherProgram(t *testing.T) {
	controller := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "CompositeController",
		"metadata": map[string]any{"name": "shop"},
	}}
	sync := map[string]any{"transport": map[string]any{"name": "nats"}}
	controller.Object["spec"] = map[string]any{"hooks": map[string]any{"sync": sync}}
	s := &session{address: "127.0.0.1:1234", declared: &declared{controllers: []*unstructured.Unstructured{controller}}}
	_, err := s.controllers()
	want := `composite/shop: spec.hooks.sync: transport.name: "nats" is a transport that another program adds; ` +
		`expected webhook or grpc, which this program can call at 127.0.0.1:1234`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	sync["webhook"] = map[string]any{"url": "http://shop/sync"}
	all, err := s.controllers()
	if err != nil {
		t.Fatal(err)
	}
	hooks, _, err := unstructured.NestedMap(all[0].Object, "spec", "hooks", "sync")
	if err != nil {
		t.Fatal(err)
	}
	redirected := map[string]any{"webhook": map[string]any{"url": "http://127.0.0.1:1234/sync"}}
	if diff := cmp.Diff(redirected, hooks); diff != "" {
		t.Errorf("the hook that the engine asks (-want +got):\n%s", diff)
	}
}
