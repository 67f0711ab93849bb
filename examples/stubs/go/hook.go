// Command website is the hook of the website controller from generated stubs: a Website becomes a
// ConfigMap, a Deployment and a Service. server.go serves it.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"google.golang.org/grpc/codes"
)

type website struct {
	compositev1.UnimplementedCompositeHookServiceServer
}

// spec is the spec of a Website. It has a type of its own because a map would make floats of
// integers.
type spec struct {
	HTML               map[string]string `json:"html"`
	Replicas           int32             `json:"replicas"`
	Image              string            `json:"image"`
	UnreachableSeconds *int64            `json:"unreachableSeconds"`
}

type object = map[string]any

// Sync returns the desired children of a Website.
func (website) Sync(ctx context.Context, request *compositev1.SyncRequest) (*compositev1.SyncResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	site := struct{ Spec spec }{Spec: spec{Image: "nginx:1.29-alpine"}}
	if err := json.Unmarshal(request.GetParent().GetBody(), &site); err != nil {
		return nil, failure(codes.InvalidArgument, "InvalidWebsite", err.Error(), 0)
	}
	if strings.Contains(site.Spec.Image, " ") {
		text := fmt.Sprintf("spec.image: got %q, expected no space", site.Spec.Image)
		return nil, failure(codes.InvalidArgument, "InvalidImage", text, 0)
	}
	if site.Spec.Image == "pending" {
		return nil, failure(codes.Unavailable, "ImagePending", "spec.image is not built yet", time.Second)
	}
	up, exists, err := readyReplicas(request)
	if err != nil {
		return nil, err
	}
	name := request.GetParent().GetName()
	status, err := json.Marshal(object{
		"url":      fmt.Sprintf("http://%s.%s.svc", name, request.GetParent().GetNamespace()),
		"replicas": site.Spec.Replicas,
		"ready":    up,
	})
	if err != nil {
		return nil, err
	}
	children, err := children(name, &site.Spec)
	if err != nil {
		return nil, err
	}
	ready := &hookv1.Condition{
		Type:    "Ready",
		Status:  hookv1.ConditionStatus_CONDITION_STATUS_FALSE,
		Reason:  "Starting",
		Message: fmt.Sprintf("%d of %d servers are ready", up, site.Spec.Replicas),
	}
	if exists && up >= site.Spec.Replicas {
		ready.Status = hookv1.ConditionStatus_CONDITION_STATUS_TRUE
		ready.Reason = "AllUp"
	}
	details := &hookv1.ResponseDetails{Conditions: []*hookv1.Condition{ready}}
	return &compositev1.SyncResponse{Status: status, Children: children, Details: details}, nil
}

// readyReplicas returns the number of ready Pods of the observed Deployment, if it exists.
func readyReplicas(request *compositev1.SyncRequest) (ready int32, exists bool, err error) {
	for _, group := range request.GetChildren() {
		for _, o := range group.GetObjects() {
			if group.GetKind() != "Deployment" || o.GetName() != request.GetParent().GetName() {
				continue
			}
			var deployment struct{ Status struct{ ReadyReplicas int32 } }
			err := json.Unmarshal(o.GetBody(), &deployment)
			return deployment.Status.ReadyReplicas, true, err
		}
	}
	return 0, false, nil
}

// children returns the pages, their servers, and the Service, each of which needs the one before.
func children(name string, spec *spec) ([]*hookv1.DesiredObject, error) {
	labels := object{"app": name}
	meta := object{"name": name, "labels": labels}
	pod := object{
		"containers": []object{{
			"name":         "web",
			"image":        spec.Image,
			"ports":        []object{{"containerPort": 80}},
			"volumeMounts": []object{{"name": "pages", "mountPath": "/usr/share/nginx/html"}},
		}},
		"volumes": []object{{"name": "pages", "configMap": object{"name": name}}},
	}
	if seconds := spec.UnreachableSeconds; seconds != nil {
		pod["tolerations"] = []object{{
			"key":               "node.kubernetes.io/unreachable",
			"operator":          "Exists",
			"effect":            "NoExecute",
			"tolerationSeconds": *seconds,
		}}
	}
	annotations := object{"website.example.com/pages": digest(spec.HTML)}
	objects := []object{
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": spec.HTML},
		{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": object{
			"replicas": spec.Replicas,
			"selector": object{"matchLabels": labels},
			"template": object{"metadata": object{"labels": labels, "annotations": annotations}, "spec": pod},
		}},
		{"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": object{
			"selector": labels,
			"ports":    []object{{"port": 80}},
		}},
	}
	var desired []*hookv1.DesiredObject
	var before object // the object that must be ready first
	for _, o := range objects {
		body, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		child := &hookv1.DesiredObject{Encoding: hookv1.Encoding_ENCODING_JSON, Body: body}
		if before != nil {
			child.DependsOn = []*hookv1.Dependency{{
				ApiVersion: before["apiVersion"].(string),
				Kind:       before["kind"].(string),
				Name:       name,
			}}
		}
		desired = append(desired, child)
		before = o
	}
	return desired, nil
}

// digest returns a hash of the pages. It is an annotation of the Pods' template, so that new pages
// create new Pods.
func digest(html map[string]string) string {
	var pages strings.Builder
	for _, name := range slices.Sorted(maps.Keys(html)) {
		pages.WriteString(name + "\x00" + html[name] + "\x00")
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(pages.String())))
}
