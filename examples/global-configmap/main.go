// Command global-configmap is the hook of the global-configmap controller, served over gRPC: a copy
// of a ConfigMap in every namespace. README.md has the commands.
package main

import (
	"context"

	"github.com/hookloop/hookloop/sdk/go/hook"
)

type global struct {
	Spec struct {
		Name string            `json:"name"`
		Data map[string]string `json:"data"`
	} `json:"spec"`
}

// namespace holds the fields of a Namespace that the hook reads.
type namespace struct {
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

func main() { hook.Main(hook.Composite{Sync: sync, Customize: customize}) }

// customize selects all namespaces, so that each new or deleted namespace causes a sync.
func customize(context.Context, *hook.CustomizeRequest) (*hook.CustomizeResponse, error) {
	return &hook.CustomizeResponse{Related: []hook.RelatedRule{{APIVersion: "v1", Resource: "namespaces"}}}, nil
}

func sync(_ context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
	parent, err := hook.Parent[global](req)
	if err != nil {
		return nil, err
	}
	namespaces := req.Related["namespaces.v1"]
	if namespaces.Err != nil {
		return nil, namespaces.Err
	}
	answer := &hook.SyncResponse{Status: map[string]any{"copies": len(req.Children["ConfigMap.v1"])}}
	for name, o := range namespaces.Objects {
		seen, err := hook.Decode[namespace](o)
		if err != nil {
			return nil, err
		}
		if seen.Status.Phase == "Terminating" {
			continue
		}
		answer.Children = append(answer.Children, hook.Child{Object: map[string]any{
			"apiVersion": "v1",
			"kind":       "ConfigMap",
			"metadata":   map[string]any{"name": parent.Spec.Name, "namespace": name},
			"data":       parent.Spec.Data,
		}})
	}
	return answer, nil
}
