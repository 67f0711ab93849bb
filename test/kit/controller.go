package kit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// CompositeController is the kind to pass to [Kit.Get] and similar methods.
const CompositeController = "metacontroller.k8s.io/v1alpha1/CompositeController"

// Composite describes a CompositeController. It gets the kit's name.
type Composite struct {
	// Parent is the plural of the parent resource in the kit's group, or "v1/configmaps".
	Parent string
	// Only narrows the parents by labels; empty takes all.
	Only map[string]any
	// Children are "v1/configmaps InPlace", "apps/v1/deployments Recreate" and so on. The method is
	// optional.
	Children []string
	// Checks are the statusChecks.conditions of all children.
	Checks []any
	// Sync, Finalize and Customize are URLs of webhooks, "grpc:host:port" for unary calls,
	// "stream:host:port", "worker:name" or "inproc:name", and "transport:name {JSON}" for one that the
	// program adds. "grpc:host:port or URL" has a fallback, and
	// "grpc:host:port hook name" names one of several hooks.
	Sync, Finalize, Customize string
	// Version is the hooks' version; empty means v1.
	Version string
	// Timeout is the time limit of a call; empty leaves it out.
	Timeout string
	// Resync is resyncPeriodSeconds; 0 leaves it out.
	Resync int64
	// IgnoreStatus sets ignoreStatusChanges.
	IgnoreStatus bool
	// DeletionLimit is a number or a percentage; nil leaves it out.
	DeletionLimit any
	// BySelector uses the parents' spec.selector; otherwise selectors are generated.
	BySelector bool
	Labels     map[string]any
}

// CRD installs a CustomResourceDefinition in the kit's group. Its objects accept any spec and status.
// The plural is the kind in lower case with an s. scope should be Namespaced or Cluster.
func (k *Kit) CRD(kind, scope string) {
	k.Helper()
	singular := strings.ToLower(kind)
	k.Apply(strings.NewReplacer("KIND", kind, "SCOPE", scope, "SINGULAR", singular).Replace(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: SINGULARs.$GROUP}
spec:
  group: $GROUP
  scope: SCOPE
  names: {kind: KIND, plural: SINGULARs, singular: SINGULAR}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`))
}

// Declare applies a CompositeController, and deletes it when the test ends. Use [Kit.Run] to wait
// until it runs, too.
func (k *Kit) Declare(c Composite) {
	k.Helper()
	hooks := map[string]any{}
	for name, address := range map[string]string{"sync": c.Sync, "finalize": c.Finalize, "customize": c.Customize} {
		if address != "" {
			hooks[name] = hookAt(address, c.Timeout, cmp.Or(c.Version, "v1"))
		}
	}
	if !strings.Contains(c.Parent, "/") {
		c.Parent = k.Group + "/v1/" + c.Parent
	}
	parent := resourceRule(c.Parent)
	if len(c.Only) > 0 {
		parent["labelSelector"] = map[string]any{"matchLabels": c.Only}
	}
	if c.IgnoreStatus {
		parent["ignoreStatusChanges"] = true
	}
	spec := map[string]any{
		"generateSelector": !c.BySelector, "parentResource": parent, "childResources": k.childRules(c), "hooks": hooks,
	}
	if c.Resync != 0 {
		spec["resyncPeriodSeconds"] = c.Resync
	}
	if c.DeletionLimit != nil {
		spec["deletionLimit"] = c.DeletionLimit
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.CompositeControllerKind,
		"metadata": map[string]any{"name": k.Name, "labels": maps.Clone(c.Labels)}, "spec": spec,
	}}
	if err := k.TryApply(o); err != nil {
		k.Fatalf("CompositeController %s: %v", k.Name, err)
	}
	k.Cleanup(func() { k.Delete(CompositeController, k.Name) })
}

// Run declares a CompositeController and waits until an engine runs it.
func (k *Kit) Run(c Composite) {
	k.Helper()
	k.Declare(c)
	k.AwaitReady(v1alpha1.ReasonRunning)
}

// AwaitReady waits until the condition Ready of the kit's CompositeController has the reason.
func (k *Kit) AwaitReady(reason string) {
	k.Helper()
	k.AwaitReadyOf(CompositeController, reason)
}

// AwaitReadyOf waits until the condition Ready of the controller of this kind with the kit's name has
// the reason.
func (k *Kit) AwaitReadyOf(kind, reason string) {
	k.Helper()
	k.Eventually("the controller is "+reason, func() error {
		o := k.Get(kind, k.Name)
		ready := Condition(o, v1alpha1.ConditionReady)
		generation, _, _ := unstructured.NestedInt64(ready, "observedGeneration")
		if ready["reason"] != reason || generation != o.GetGeneration() {
			return fmt.Errorf("generation %d, condition %v", o.GetGeneration(), ready)
		}
		return nil
	})
}

func hookAt(address, timeout, version string) map[string]any {
	if preferred, fallback, found := strings.Cut(address, " or "); found {
		both := hookAt(preferred, timeout, version)
		maps.Copy(both, hookAt(fallback, timeout, version))
		return both
	}
	for prefix, mode := range map[string]string{"grpc:": "Unary", "stream:": "Stream"} {
		if at, ok := strings.CutPrefix(address, prefix); ok {
			target, name, named := strings.Cut(at, " hook ")
			grpc := map[string]any{"target": target, "mode": mode, "insecure": true}
			if named {
				grpc["hook"] = name
			}
			if timeout != "" {
				grpc["timeout"] = timeout
			}
			return map[string]any{"version": version, "grpc": grpc}
		}
	}
	if worker, ok := strings.CutPrefix(address, "worker:"); ok {
		return map[string]any{"version": version, "grpc": map[string]any{"worker": worker}}
	}
	if rest, ok := strings.CutPrefix(address, "transport:"); ok {
		name, config, _ := strings.Cut(rest, " ")
		transport := map[string]any{"name": name}
		if config != "" {
			var object map[string]any
			if err := json.Unmarshal([]byte(config), &object); err != nil {
				panic("kit: the configuration of the transport " + name + ": " + err.Error())
			}
			transport["config"] = object
		}
		return map[string]any{"version": version, "transport": transport}
	}
	if name, ok := strings.CutPrefix(address, "inproc:"); ok {
		return map[string]any{"version": version, "inproc": map[string]any{"name": name}}
	}
	webhook := map[string]any{"url": address}
	if timeout != "" {
		webhook["timeout"] = timeout
	}
	return map[string]any{"version": version, "webhook": webhook}
}

func (k *Kit) childRules(c Composite) []any {
	rules := make([]any, 0, len(c.Children))
	for _, child := range c.Children {
		resource, method, _ := strings.Cut(k.Expand(child), " ")
		rule := resourceRule(resource)
		if method != "" {
			strategy := map[string]any{"method": method}
			if len(c.Checks) > 0 {
				strategy["statusChecks"] = map[string]any{"conditions": c.Checks}
			}
			rule["updateStrategy"] = strategy
		}
		rules = append(rules, rule)
	}
	return rules
}

// resourceRule parses "apps/v1/deployments".
func resourceRule(resource string) map[string]any {
	slash := strings.LastIndex(resource, "/")
	return map[string]any{"apiVersion": resource[:slash], "resource": resource[slash+1:]}
}
