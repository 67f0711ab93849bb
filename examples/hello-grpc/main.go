// Command hello-grpc is the hook of the hello-grpc controller, served over gRPC: one function from
// the observed state of a Greeting to its desired children. README.md has the commands.
package main

import (
	"context"
	"fmt"

	"github.com/hookloop/hookloop/sdk/go/hook"
)

type greeting struct {
	Spec struct {
		Who      string `json:"who"`
		Replicas int    `json:"replicas"`
	} `json:"spec"`
}

type object = map[string]any

func main() { hook.Main(hook.Composite{Sync: sync}) }

func sync(_ context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
	parent, err := hook.Parent[greeting](req)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("Hello, %s!", parent.Spec.Who)
	meta := object{
		"name": req.Parent.Name,
	}
	labels := object{
		"demo.example.com/name": req.Parent.Name,
	}
	server := object{
		"name":         "server",
		"image":        "busybox:1.36",
		"command":      []string{"httpd", "-f", "-p", "8080", "-h", "/www"},
		"volumeMounts": []object{{"name": "page", "mountPath": "/www"}},
	}
	page := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": object{"index.html": text}}
	deployment := object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": object{
		"replicas": parent.Spec.Replicas,
		"selector": object{"matchLabels": labels},
		"template": object{
			"metadata": object{"labels": labels, "annotations": object{"demo.example.com/text": text}},
			"spec":     object{"containers": []object{server}, "volumes": []object{{"name": "page", "configMap": meta}}},
		},
	}}
	service := object{"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": object{
		"selector": labels, "ports": []object{{"port": 80, "targetPort": 8080}},
	}}
	pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": object{
		"restartPolicy": "OnFailure",
		"containers":    []object{{"name": "hello", "image": "busybox:1.36", "command": []string{"echo", text}}},
	}}
	return &hook.SyncResponse{
		Status:   object{"greeting": text, "servers": len(req.Children["Deployment.apps/v1"])},
		Children: []hook.Child{{Object: page}, {Object: deployment}, {Object: service}, {Object: pod}},
	}, nil
}
