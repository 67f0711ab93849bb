package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/sdk/go/hook"
)

// ask asks the hook about a note. The test calls the hook like any function.
func ask(t *testing.T, text string) (*hook.SyncResponse, error) {
	t.Helper()
	req, err := hook.NewSyncRequest(object{
		"apiVersion": "demo.example.com/v1",
		"kind":       "Note",
		"metadata":   object{"namespace": "shop", "name": "milk"},
		"spec":       object{"text": text},
	}, nil, "ConfigMap.v1")
	if err != nil {
		t.Fatal(err)
	}
	return sync(t.Context(), req)
}

func TestANoteBecomesAConfigMap(t *testing.T) {
	got, err := ask(t, "Buy milk")
	if err != nil {
		t.Fatal(err)
	}
	want := &hook.SyncResponse{Status: object{"length": 8}, Children: []hook.Child{{
		Object: object{
			"apiVersion": "v1",
			"kind":       "ConfigMap",
			"metadata":   object{"name": "milk"},
			"data":       object{"text": "Buy milk"},
		},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
}

func TestAnEmptyNoteIsRefused(t *testing.T) {
	if got, err := ask(t, ""); got != nil || err == nil {
		t.Errorf("got %v and %v, want a refusal", got, err)
	}
}
