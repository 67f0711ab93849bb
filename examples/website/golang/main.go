// Command golang is the hook of the website controller: a Website becomes a ConfigMap with its
// pages, a Deployment that serves them, and a Service.
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/hookloop/hookloop/sdk/go/hook"
	appsv1 "k8s.io/api/apps/v1"
)

type website struct {
	Spec struct {
		HTML               map[string]string `json:"html"`
		Replicas           int32             `json:"replicas"`
		Image              string            `json:"image"`
		UnreachableSeconds *int64            `json:"unreachableSeconds"`
	} `json:"spec"`
}

type object = map[string]any

func main() { hook.Main(hook.Composite{Sync: sync}) }

func sync(_ context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
	site, err := hook.Parent[website](req)
	if err != nil {
		return nil, err
	}
	observed, err := hook.ChildrenOf[appsv1.Deployment](req, "Deployment.apps/v1")
	if err != nil {
		return nil, err
	}
	name := req.Parent.Name
	spec := site.Spec
	up := int32(0)
	ready := hook.Condition{Type: "Ready", Status: hook.ConditionFalse, Reason: "Starting"}
	if servers := observed[name]; servers != nil {
		up = servers.Status.ReadyReplicas
		if up >= spec.Replicas {
			ready.Status = hook.ConditionTrue
			ready.Reason = "AllUp"
		}
	}
	ready.Message = fmt.Sprintf("%d of %d servers are ready", up, spec.Replicas)
	labels := object{"app": name}
	meta := object{"name": name, "labels": labels}
	server := object{
		"name":         "web",
		"image":        cmp.Or(spec.Image, "nginx:1.29-alpine"),
		"ports":        []object{{"containerPort": 80}},
		"volumeMounts": []object{{"name": "pages", "mountPath": "/usr/share/nginx/html"}},
	}
	pod := object{
		"containers": []object{server},
		"volumes":    []object{{"name": "pages", "configMap": object{"name": name}}},
	}
	if seconds := spec.UnreachableSeconds; seconds != nil {
		pod["tolerations"] = []object{{"key": "node.kubernetes.io/unreachable", "operator": "Exists",
			"effect": "NoExecute", "tolerationSeconds": *seconds}}
	}
	template := object{
		"metadata": object{"labels": labels, "annotations": object{"website.example.com/pages": digest(spec.HTML)}},
		"spec":     pod,
	}
	pages := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": spec.HTML}
	servers := object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta,
		"spec": object{"replicas": spec.Replicas, "selector": object{"matchLabels": labels}, "template": template}}
	service := object{
		"apiVersion": "v1",
		"kind":       "Service",
		"metadata":   meta,
		"spec":       object{"selector": labels, "ports": []object{{"port": 80}}},
	}
	return &hook.SyncResponse{
		Status: object{
			"url":      fmt.Sprintf("http://%s.%s.svc", name, req.Parent.Namespace),
			"replicas": spec.Replicas,
			"ready":    up,
		},
		Conditions: []hook.Condition{ready},
		Children: []hook.Child{
			{Object: pages},
			{Object: servers, DependsOn: hook.DependsOn(pages)},
			{Object: service, DependsOn: hook.DependsOn(servers)},
		},
	}, nil
}

// digest returns a hash of the pages. It is an annotation of the Pods' template, so that new pages
// create new Pods.
func digest(html map[string]string) string {
	var pages string
	for _, name := range slices.Sorted(maps.Keys(html)) {
		pages += name + "\x00" + html[name] + "\x00"
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(pages)))
}
