// Command golang is a hook on the Go SDK for the tests of "hookloop verify". It is a good one,
// except for a parent with the name of a fault.
package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/hookloop/hookloop/sdk/go/hook"
)

type object = map[string]any

type demo struct {
	Spec struct {
		Image    string            `json:"image"`
		Replicas int64             `json:"replicas"`
		Config   map[string]string `json:"settings"`
	} `json:"spec"`
	Status struct {
		Syncs int64 `json:"syncs"`
	} `json:"status"`
}

func main() { hook.Main(hook.Composite{Sync: sync, Finalize: finalize, Customize: customize}) }

func customize(_ context.Context, req *hook.CustomizeRequest) (*hook.CustomizeResponse, error) {
	return &hook.CustomizeResponse{Related: []hook.RelatedRule{
		{APIVersion: "v1", Resource: "configmaps", LabelSelector: &hook.LabelSelector{
			MatchLabels: map[string]string{"for": "demos"},
		}},
		{APIVersion: "v1", Resource: "secrets", Names: []string{"login"}},
	}}, nil
}

func sync(_ context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
	parent, err := hook.Parent[demo](req)
	if err != nil {
		return nil, err
	}
	var raw struct{ Spec json.RawMessage }
	if err := json.Unmarshal(req.Parent.JSON, &raw); err != nil {
		return nil, err
	}
	state := object{"settings": len(parent.Spec.Config), "related": len(req.Related["configmaps.v1"].Objects)}
	names := slices.Sorted(maps.Keys(parent.Spec.Config))
	data := object{}
	web := deployment(parent)
	switch fault := req.Parent.Name; fault {
	case "map-order":
		names = slices.Collect(maps.Keys(parent.Spec.Config))
	case "hash-of-spec":
		state["hash"] = fmt.Sprintf("%x", sha256.Sum256(raw.Spec))
	case "first-related":
		for name := range req.Related["configmaps.v1"].Objects {
			state["first"] = name
			break
		}
	case "time":
		data["at"] = time.Now().Format(time.RFC3339Nano)
	case "seconds":
		state["at"] = time.Now().Unix()
	case "time-without-spec":
		if raw.Spec == nil {
			state["at"] = time.Now().Format(time.RFC3339Nano)
		}
	case "random":
		data["id"] = rand.Text()
	case "counter":
		state["syncs"] = parent.Status.Syncs + 1
	case "echo", "compare":
		if err := observed(req, fault, web); err != nil {
			return nil, err
		}
	}
	for i, name := range names {
		names[i] = name + "=" + parent.Spec.Config[name]
	}
	data["settings"] = strings.Join(names, "\n")
	settings := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "settings"}, "data": data}
	return &hook.SyncResponse{Status: state, Children: []hook.Child{{Object: settings}, {Object: web}}}, nil
}

// observed plants the faults of a hook that reads the observed Deployment.
func observed(req *hook.SyncRequest, fault string, web object) error {
	before, there := req.Children["Deployment.apps/v1"]["web"]
	if !there {
		return nil
	}
	var whole object
	if err := json.Unmarshal(before.JSON, &whole); err != nil {
		return err
	}
	spec := whole["spec"].(object)
	switch {
	case fault == "echo": // also the defaults of the server
		spec["replicas"] = web["spec"].(object)["replicas"]
		spec["template"].(object)["spec"].(object)["containers"].([]any)[0].(object)["image"] =
			web["spec"].(object)["template"].(object)["spec"].(object)["containers"].([]any)[0].(object)["image"]
		maps.Copy(web, whole)
	case !reflect.DeepEqual(spec, web["spec"]): // the server's defaults differ, too
		web["spec"].(object)["minReadySeconds"] = whole["metadata"].(object)["generation"]
	}
	return nil
}

func deployment(parent *demo) object {
	labels := object{"app": "web"}
	container := object{"name": "web", "image": parent.Spec.Image}
	return object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": "web"},
		"spec": object{
			"replicas": parent.Spec.Replicas, "selector": object{"matchLabels": labels},
			"template": object{"metadata": object{"labels": labels}, "spec": object{"containers": []any{container}}},
		},
	}
}

func finalize(ctx context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
	resp := &hook.SyncResponse{Status: object{"deleting": true}, Finalized: true}
	gone := len(req.Children["ConfigMap.v1"]) == 0
	switch req.Parent.Name {
	case "never-finalized":
		resp.Finalized = false
	case "waits-for-what-it-keeps":
		kept, err := sync(ctx, req)
		if err != nil {
			return nil, err
		}
		resp.Children = kept.Children
		resp.Finalized = gone
	case "random-when-deleted":
		resp.Status = object{"id": rand.Text()}
	default:
		resp.Finalized = gone
	}
	return resp, nil
}
