package render

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// rule returns the status that the controller of a kind would set when all is well.
type rule func(u *unstructured.Unstructured) map[string]any

// rules are the rules of built-in kinds. Other kinds get the condition Ready.
var rules = map[string]rule{
	"Deployment":            deployment,
	"StatefulSet":           statefulSet,
	"ReplicaSet":            replicaSet,
	"DaemonSet":             daemonSet,
	"Job":                   job,
	"Pod":                   pod,
	"PersistentVolumeClaim": claim,
}

// DefaultReady are the kinds that become ready unless the user names others.
var DefaultReady = []string{
	"Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "Job", "Pod", "PersistentVolumeClaim",
}

// statusTime is the time in statuses, the same in every run.
const statusTime = "2026-01-01T00:00:00Z"

// makeReady sets the status of the objects that the engine has written, if their kind becomes
// ready. It reports whether one changed.
func (s *session) makeReady(ctx context.Context) (bool, error) {
	if !s.UntilSettled && !s.Delete {
		return false, nil
	}
	changed := false
	for _, ref := range s.record.written() {
		if !slices.Contains(s.Ready, ref.GVK.Kind) {
			continue
		}
		u := s.world.find(ref)
		if u == nil || u.GetDeletionTimestamp() != nil {
			continue
		}
		set, err := s.setStatus(ctx, u)
		if err != nil {
			return false, err
		}
		changed = changed || set
	}
	return changed, nil
}

// setStatus sets the status of one object, and reports whether that changed it.
func (s *session) setStatus(ctx context.Context, u *unstructured.Unstructured) (bool, error) {
	r := rules[u.GetKind()]
	if r == nil {
		r = custom
	}
	status := r(u)
	of := readied{u.GetUID(), u.GetGeneration()}
	if s.readied[of] {
		return false, nil
	}
	s.readied[of] = true
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return false, err
	}
	resource, _, _ := s.world.memory.Resource(u.GroupVersionKind())
	_, err = s.world.client.Resource(resource).Namespace(u.GetNamespace()).Patch(
		ctx, u.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return false, fmt.Errorf("--ready: status of %s: %w", refOf(u), err)
	}
	return true, nil
}

// readied identifies a state of an object that has become ready.
type readied struct {
	uid        types.UID
	generation int64
}

func condition(kind, status string) map[string]any {
	return map[string]any{
		"type": kind, "status": status, "reason": "Rendered", "message": "", "lastTransitionTime": statusTime,
	}
}

// number returns a field of the spec, or its default.
func number(u *unstructured.Unstructured, field string) int64 {
	n, found, err := unstructured.NestedInt64(u.Object, "spec", field)
	if !found || err != nil {
		return 1
	}
	return n
}

func deployment(u *unstructured.Unstructured) map[string]any {
	n := number(u, "replicas")
	return map[string]any{
		"observedGeneration": u.GetGeneration(), "replicas": n, "updatedReplicas": n, "readyReplicas": n,
		"availableReplicas": n,
		"conditions":        []any{condition("Available", "True"), condition("Progressing", "True")},
	}
}

func statefulSet(u *unstructured.Unstructured) map[string]any {
	n := number(u, "replicas")
	return map[string]any{
		"observedGeneration": u.GetGeneration(), "replicas": n, "updatedReplicas": n, "readyReplicas": n,
		"availableReplicas": n, "currentReplicas": n,
	}
}

func replicaSet(u *unstructured.Unstructured) map[string]any {
	n := number(u, "replicas")
	return map[string]any{
		"observedGeneration": u.GetGeneration(), "replicas": n, "fullyLabeledReplicas": n, "readyReplicas": n,
		"availableReplicas": n,
	}
}

func daemonSet(u *unstructured.Unstructured) map[string]any {
	return map[string]any{
		"observedGeneration": u.GetGeneration(), "desiredNumberScheduled": int64(1), "currentNumberScheduled": int64(1),
		"updatedNumberScheduled": int64(1), "numberReady": int64(1), "numberAvailable": int64(1),
		"numberMisscheduled": int64(0),
	}
}

func job(u *unstructured.Unstructured) map[string]any {
	return map[string]any{
		"succeeded": number(u, "completions"), "startTime": statusTime, "completionTime": statusTime,
		"conditions": []any{map[string]any{"type": "Complete", "status": "True", "lastTransitionTime": statusTime}},
	}
}

// pod returns the status of a Pod that runs; one that is not restarted has succeeded.
func pod(u *unstructured.Unstructured) map[string]any {
	if policy, _, _ := unstructured.NestedString(u.Object, "spec", "restartPolicy"); policy == "Never" {
		return map[string]any{"phase": "Succeeded"}
	}
	return map[string]any{"phase": "Running", "conditions": []any{condition("Ready", "True")}}
}

func claim(*unstructured.Unstructured) map[string]any { return map[string]any{"phase": "Bound"} }

// custom returns the status of other kinds.
func custom(u *unstructured.Unstructured) map[string]any {
	ready := condition("Ready", "True")
	ready["observedGeneration"] = u.GetGeneration()
	return map[string]any{"observedGeneration": u.GetGeneration(), "conditions": []any{ready}}
}

// written returns the objects that the engine has created or changed, in the order of their names.
func (r *record) written() []object.Ref {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := map[object.Ref]bool{}
	var all []object.Ref
	for _, s := range r.syncs {
		for _, w := range s.Writes {
			if !seen[w.Ref] && w.Ref != s.Key.Parent && w.Ref.GVK != (schema.GroupVersionKind{}) {
				seen[w.Ref] = true
				all = append(all, w.Ref)
			}
		}
	}
	return all
}
