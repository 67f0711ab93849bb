package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/test/cluster"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// exceptions are the fields that a real control plane has and render cannot have, besides uid,
// resourceVersion, generation, managedFields and times.
var exceptions = []struct {
	kind   string
	path   []string
	reason string
}{
	{"Service", []string{"spec", "clusterIP"}, "the API server assigns an address"},
	{"Service", []string{"spec", "clusterIPs"}, "the API server assigns an address"},
	{
		"Deployment", []string{"metadata", "annotations", "deployment.kubernetes.io/revision"},
		"Kubernetes' controller of Deployments counts its ReplicaSets",
	},
}

// temporary is the end of the name of an object in a dry run.
const temporary = "-rendered"

// defaulted returns a rendered object with the defaults that the API server adds: the result of a
// dry run. A created object gets another name in it, because the API server has one of its own.
func (c *comparison) defaulted(
	ctx context.Context, change change, present *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	resource, err := c.resource(change.named)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: generic(change.After)}
	complete(u, present)
	if change.Change == "changed" {
		u.SetUID(present.GetUID())
		u.SetResourceVersion(present.GetResourceVersion())
		return resource.Update(ctx, u, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	}
	name := u.GetName()
	u.SetName(name + temporary)
	created, err := resource.Create(ctx, u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, err
	}
	created.SetName(name)
	if labels := created.GetLabels(); labels["kubernetes.io/metadata.name"] == name+temporary {
		labels["kubernetes.io/metadata.name"] = name // of Namespaces
		created.SetLabels(labels)
	}
	return created, nil
}

// complete adds what render leaves out: the uids of owners, and the values of Secrets.
func complete(u, present *unstructured.Unstructured) {
	uids := map[string]types.UID{}
	for _, o := range present.GetOwnerReferences() {
		uids[o.Kind+" "+o.Name] = o.UID
	}
	owners := u.GetOwnerReferences()
	for i, o := range owners {
		owners[i].UID = uids[o.Kind+" "+o.Name]
		if owners[i].UID == "" {
			owners[i].UID = "missing"
		}
	}
	if len(owners) > 0 {
		u.SetOwnerReferences(owners)
	}
	values, _ := present.Object["data"].(map[string]any)
	data, _ := u.Object["data"].(map[string]any)
	if u.GetKind() != "Secret" {
		return
	}
	for key := range data {
		data[key] = values[key]
		if values[key] == nil {
			data[key] = "" // differs
		}
	}
}

// normalise returns an object without status and without the fields that differ in every run.
func normalise(u *unstructured.Unstructured) map[string]any {
	u = u.DeepCopy()
	delete(u.Object, "status")
	for _, field := range []string{
		"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink",
	} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	owners, _, _ := unstructured.NestedSlice(u.Object, "metadata", "ownerReferences")
	for _, o := range owners {
		delete(o.(map[string]any), "uid")
	}
	if len(owners) > 0 {
		_ = unstructured.SetNestedSlice(u.Object, owners, "metadata", "ownerReferences") // metadata is an object
	}
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", object.LastAppliedAnnotation)
	for _, e := range exceptions {
		if e.kind == u.GetKind() {
			unstructured.RemoveNestedField(u.Object, e.path...)
		}
	}
	for _, field := range []string{"annotations", "labels"} {
		if m, found, _ := unstructured.NestedMap(u.Object, "metadata", field); found && len(m) == 0 {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
	}
	unnumbered(u)
	return generic(u.Object)
}

// unnumbered replaces the random name of the volume with the token of a Pod.
func unnumbered(u *unstructured.Unstructured) {
	const volume = "kube-api-access-"
	var walk func(value any)
	walk = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			if name, _ := v["name"].(string); strings.HasPrefix(name, volume) {
				v["name"] = volume
			}
			for _, field := range v {
				walk(field)
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		}
	}
	if u.GetKind() == "Pod" {
		walk(u.Object["spec"])
	}
}

// statusOf returns the status of an object without the times of conditions.
func statusOf(u *unstructured.Unstructured) map[string]any {
	status, _ := u.DeepCopy().Object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok {
			delete(condition, "lastTransitionTime")
		}
	}
	return generic(status)
}

// own reports whether a write is one of the engine, without leases and Events.
func own(w cluster.Write) bool {
	return strings.HasPrefix(w.UserAgent, "hookloop/") && !w.DryRun && w.Resource != "events" && w.Resource != "leases"
}

// generic returns a JSON object with the types that decoding JSON gives.
func generic(m map[string]any) map[string]any {
	data, err := json.Marshal(m)
	if err != nil { // it came from JSON
		panic(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		panic(err)
	}
	return out
}
