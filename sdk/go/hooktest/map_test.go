package hooktest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/sdk/go/hooktest"
)

const team = `
apiVersion: example.com/v1
kind: Team
metadata: {name: a, namespace: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: in, namespace: shop}
---
apiVersion: v1
kind: Secret
metadata: {name: out, namespace: shop}
`

// copyInput makes a Secret with the input's name, and keeps the observed ones.
func copyInput(_ context.Context, req *hook.MapRequest) (*hook.MapResponse, error) {
	resp := &hook.MapResponse{Finalized: req.Finalizing}
	resp.Outputs = append(resp.Outputs, hook.Child{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": req.Input.Name},
	}})
	for name := range req.Outputs["Secret.v1"] {
		resp.Outputs = append(resp.Outputs, hook.Child{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name},
		}})
	}
	return resp, nil
}

func TestMapFiles(t *testing.T) {
	for name, ask := range map[string]func(context.Context, hook.MapFunc, string, ...string) (*hooktest.Answer, error){
		"map": hooktest.Map, "finalize": hooktest.FinalizeMap,
	} {
		answer, err := ask(t.Context(), copyInput, file(t, team))
		if err != nil || len(answer.Children) != 2 {
			t.Errorf("%s: got %+v, %v; want two outputs", name, answer, err)
		}
	}
	keepAll := func(_ context.Context, req *hook.TombstoneRequest) (*hook.TombstoneResponse, error) {
		return hook.Keep(req.Outputs["Secret.v1"]["out"], req.Outputs["ConfigMap.v1"]["in"]), nil
	}
	answer, err := hooktest.Tombstone(t.Context(), keepAll, file(t, team))
	if err != nil || len(answer.Children) != 2 {
		t.Errorf("tombstone: got %+v, %v; want two outputs", answer, err)
	}
}

func TestMapMistakes(t *testing.T) {
	one, _, _ := strings.Cut(team, "---")
	_, err := hooktest.Map(t.Context(), copyInput, file(t, one))
	if err == nil || !strings.Contains(err.Error(), "expected the parent and the input") {
		t.Errorf("a file without an input: got %v", err)
	}
	request, err := hook.NewMapRequest(object("Team", "a"), object("ConfigMap", "in"), nil, "ConfigMap.v1")
	if err != nil {
		t.Fatal(err)
	}
	_, err = hooktest.CheckMap(request, &hook.MapResponse{Outputs: []hook.Child{{Object: object("Secret", "a")}}})
	if err == nil || !strings.Contains(err.Error(),
		`outputs[0] Secret.v1 "shop/a": kind is not declared by the controller; expected one of [ConfigMap.v1]`) {
		t.Errorf("an undeclared kind: got %v", err)
	}
	gone, err := hook.NewTombstoneRequest(object("Team", "a"), []any{object("Secret", "a")})
	if err != nil {
		t.Fatal(err)
	}
	other := hook.Object{APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: "b"}
	_, err = hooktest.CheckTombstone(gone, hook.Keep(other))
	if err == nil || !strings.Contains(err.Error(),
		`outputs[0] Secret.v1 "shop/b": does not exist; expected some of the outputs of the request: [Secret.v1 "shop/a"]`) {
		t.Errorf("an output that is not there: got %v", err)
	}
	if _, err := hooktest.CheckTombstone(gone, hook.Keep(gone.Outputs["Secret.v1"]["a"])); err != nil {
		t.Error(err)
	}
}

func object(kind, name string) map[string]any {
	apiVersion := "v1"
	if kind == "Team" {
		apiVersion = "example.com/v1"
	}
	return map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": name},
	}
}
