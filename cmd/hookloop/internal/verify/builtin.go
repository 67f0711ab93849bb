package verify

import (
	"cmp"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

// common lists the kinds of children that the built-in controllers declare.
var common = []struct{ apiVersion, resource string }{
	{"v1", "configmaps"},
	{"v1", "secrets"},
	{"v1", "services"},
	{"v1", "serviceaccounts"},
	{"v1", "persistentvolumeclaims"},
	{"v1", "pods"},
	{"apps/v1", "deployments"},
	{"apps/v1", "statefulsets"},
	{"apps/v1", "daemonsets"},
	{"batch/v1", "jobs"},
	{"batch/v1", "cronjobs"},
	{"networking.k8s.io/v1", "ingresses"},
	{"networking.k8s.io/v1", "networkpolicies"},
	{"rbac.authorization.k8s.io/v1", "roles"},
	{"rbac.authorization.k8s.io/v1", "rolebindings"},
	{"autoscaling/v2", "horizontalpodautoscalers"},
	{"policy/v1", "poddisruptionbudgets"},
}

// builtinGroup is the group of the built-in parent.
const builtinGroup = "verify.hookloop.dev/v1"

// builtins makes the controller if the user names no file.
var builtins = map[hook.ControllerKind]func() map[string]any{
	hook.Composite: builtinComposite,
	hook.Decorator: builtinDecorator,
	hook.Mapping:   builtinMap,
}

// builtinKinds returns the kinds with a built-in controller, in the order of the table of kinds.
func builtinKinds() []hook.ControllerKind {
	var names []hook.ControllerKind
	for _, d := range hook.Descriptors() {
		if builtins[d.ControllerKind] != nil {
			names = append(names, d.ControllerKind)
		}
	}
	return names
}

func builtinController(kind string, spec map[string]any, children string) map[string]any {
	var list []any
	for _, c := range common {
		list = append(list, map[string]any{"apiVersion": c.apiVersion, "resource": c.resource})
	}
	spec[children] = list
	spec["hooks"] = map[string]any{"sync": map[string]any{
		"version": "v2", "webhook": map[string]any{"url": "http://verify.invalid/sync"},
	}}
	return map[string]any{
		"apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": kind, "metadata": map[string]any{"name": "verify"},
		"spec": spec,
	}
}

func builtinComposite() map[string]any {
	return builtinController("CompositeController", map[string]any{
		"generateSelector": true,
		"parentResource":   map[string]any{"apiVersion": builtinGroup, "resource": "examples"},
	}, "childResources")
}

func builtinDecorator() map[string]any {
	return builtinController("DecoratorController", map[string]any{
		"resources": []any{map[string]any{"apiVersion": builtinGroup, "resource": "examples"}},
	}, "attachments")
}

func builtinMap() map[string]any {
	m := builtinController("MapController", map[string]any{
		"parentResource": map[string]any{"apiVersion": builtinGroup, "resource": "examples"},
		"inputResources": []any{map[string]any{"apiVersion": "v1", "resource": "configmaps"}},
	}, "outputResources")
	spec := m["spec"].(map[string]any)
	hooks := spec["hooks"].(map[string]any)
	spec["hooks"] = map[string]any{"map": hooks["sync"]}
	return m
}

// builtinParent returns a parent with a field of each type. A known resource is its kind.
func builtinParent(r object.Resource) map[string]any {
	apiVersion := builtinGroup
	kind := "Example"
	if !r.GVK.Empty() {
		apiVersion = r.GVK.GroupVersion().String()
		kind = cmp.Or(r.GVK.Kind, kind)
	}
	return map[string]any{
		"apiVersion": apiVersion,
		"kind":       kind,
		"metadata": map[string]any{
			"name":        "example",
			"labels":      map[string]any{"app": "example", "team": "shop", "tier": "web", "zone": "a"},
			"annotations": map[string]any{"verify.hookloop.dev/note": "a note"},
		},
		"spec": map[string]any{
			"replicas": int64(2),
			"number":   int64(3),
			"image":    "nginx:1.29-alpine",
			"text":     "a text",
			"enabled":  true,
			"data":     map[string]any{"key": "value"},
			"items":    []any{map[string]any{"name": "first", "size": int64(1)}},
			"selector": map[string]any{"matchLabels": map[string]any{"app": "example"}},
		},
	}
}
