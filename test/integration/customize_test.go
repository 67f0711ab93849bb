package integration

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// rules returns a customize hook that answers the parent's spec.rules.
func rules(k *kit.Kit) *kit.Hook {
	return k.Hook(func(r kit.Request) any {
		rules, _, _ := unstructured.NestedSlice(r.Parent.Object, "spec", "rules")
		if rules == nil {
			rules = []any{}
		}
		return map[string]any{"relatedResources": rules}
	})
}

// seen returns a sync hook with a status that lists the related objects: "ConfigMap.v1: a b".
func seen(k *kit.Kit) *kit.Hook {
	return k.Hook(func(r kit.Request) any {
		groups := []string{}
		for _, kind := range slices.Sorted(maps.Keys(r.Related)) {
			groups = append(groups, kind+": "+strings.Join(slices.Sorted(maps.Keys(r.Related[kind])), " "))
		}
		return map[string]any{"status": map[string]any{"seen": strings.Join(groups, "; ")}}
	})
}

func relating(name, rules string) string {
	return "apiVersion: $GROUP/v1\nkind: Web\nmetadata: {name: " + name + ", namespace: $NS}\n" +
		"spec: {rules: [" + rules + "]}"
}

func source(name, labels string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: $NS, labels: {" + labels + "}}}"
}

// TestRelatedObjects adds, changes and removes related objects. The state before a change counts as
// much as the state after it.
func TestRelatedObjects(t *testing.T) {
	k := start(t)
	customize := rules(k)
	run(t, k, kit.Composite{Sync: seen(k).URL, Customize: customize.URL})
	k.Apply(source("first", "use: here"))
	k.Apply(relating("web", "{apiVersion: v1, resource: configmaps, labelSelector: {matchLabels: {use: here}}}"))
	k.Apply(
		relating(
			"named",
			"{apiVersion: v1, resource: configmaps, names: [second]}, {apiVersion: v1, resource: secrets, names: [none]}",
		),
	)
	saw := func(web, named string) {
		t.Helper()
		await(k, "Web", "web", "status.seen", web)
		await(k, "Web", "named", "status.seen", named)
	}
	saw("ConfigMap.v1: first", "ConfigMap.v1: ; Secret.v1: ")
	k.Apply(source("second", "use: here"))
	saw("ConfigMap.v1: first second", "ConfigMap.v1: second; Secret.v1: ")
	k.Patch("v1/ConfigMap", "second", "metadata: {labels: {use: gone}}")
	saw("ConfigMap.v1: first", "ConfigMap.v1: second; Secret.v1: ")
	k.Patch("v1/ConfigMap", "second", "metadata: {labels: {use: here}}")
	saw("ConfigMap.v1: first second", "ConfigMap.v1: second; Secret.v1: ")
	k.Delete("v1/ConfigMap", "second")
	saw("ConfigMap.v1: first", "ConfigMap.v1: ; Secret.v1: ")

	if n := customize.Asked("web"); n != 1 {
		t.Errorf("the customize hook was asked %d times about an unchanged parent, want once", n)
	}
	k.Patch("Web", "web", "metadata: {labels: {a: b}}")
	k.Eventually("a changed parent is asked about again", func() error {
		if customize.Asked("web") < 2 {
			return errors.New("it is not")
		}
		return nil
	})
	k.Patch("Web", "web", "spec: {rules: []}")
	await(k, "Web", "web", "status.seen", "")
}

// TestRelatedNamespaces follows rules of version v2: objects of other namespaces, cluster-scoped
// ones, and namespaces by their labels.
func TestRelatedNamespaces(t *testing.T) {
	k := start(t)
	run(t, k, kit.Composite{Sync: seen(k).URL, Customize: rules(k).URL, Version: "v2"})
	for _, space := range []string{"red", "blue"} {
		name := k.Namespace + "-" + space
		k.Object("v1/Namespace", name).Label("colour-of-"+k.Namespace, space).Apply()
		t.Cleanup(func() { k.Delete("v1/Namespace", name) })
		k.Object("v1/Secret", "secret").In(name).Label("use", "here").Apply()
		k.Object("v1/Secret", "other").In(name).Apply()
	}
	in := func(space string) string { return strings.ReplaceAll(space, "$", k.Namespace+"-") }
	for name, row := range map[string]struct{ rule, want string }{
		"everywhere": {"labelSelector: {matchLabels: {use: here}}", "Secret.v1: $blue/secret $red/secret"},
		"elsewhere":  {"namespace: $NS-blue, names: [other]", "Secret.v1: $blue/other"},
		"selected":   {"namespaceSelector: {matchLabels: {colour-of-$NS: red}}", "Secret.v1: $red/other $red/secret"},
	} {
		k.Apply(relating(name, "{apiVersion: v1, resource: secrets, "+row.rule+"}"))
		await(k, "Web", name, "status.seen", in(row.want))
	}
	k.Apply(relating("cluster", "{apiVersion: v1, resource: namespaces, names: [default]}"))
	await(k, "Web", "cluster", "status.seen", "Namespace.v1: default")

	k.Patch("v1/Namespace", k.Namespace+"-blue", "metadata: {labels: {colour-of-$NS: red}}")
	await(k, "Web", "selected", "status.seen", in("Secret.v1: $blue/other $blue/secret $red/other $red/secret"))
	k.Patch("v1/Namespace", k.Namespace+"-red", "metadata: {labels: {colour-of-$NS: null}}")
	await(k, "Web", "selected", "status.seen", in("Secret.v1: $blue/other $blue/secret"))
}

// TestRelatedRulesThatAreRefused reports the invalid rule on the parent, and recovers with a valid
// one.
func TestRelatedRulesThatAreRefused(t *testing.T) {
	parallel(t)
	const labels = "labelSelector: {matchLabels: {a: b}}"
	for name, row := range map[string]struct{ rules, reason, part string }{
		"null": {"null", "InvalidHookAnswer", "relatedResources[0]: got null, expected an object"},
		"the second is wrong": {"{apiVersion: v1, resource: secrets}, {apiVersion: v1, resource: configmaps, " +
			"names: [a], " + labels + "}", "InvalidHookAnswer", "relatedResources[1]: names and labelSelector are both set"},
		"another namespace": {"{apiVersion: v1, resource: secrets, namespace: default}",
			"InvalidHookAnswer", `namespace is "default"; expected`},
		"a namespace selector, in v1": {"{apiVersion: v1, resource: secrets, namespaceSelector: {matchLabels: {a: b}}}",
			"InvalidHookAnswer", "needs version v2"},
		"no resource": {"{apiVersion: v1}",
			"InvalidHookAnswer", "relatedResources[0]: resource is missing"},
		"a resource that is not served": {"{apiVersion: v1, resource: unicorns}", "RelatedNotFound", "unicorns"},
		"a resource without watch": {"{apiVersion: authorization.k8s.io/v1, resource: subjectaccessreviews}",
			"RelatedNotFound", "subjectaccessreviews"},
	} {
		t.Run(name, func(t *testing.T) {
			k := start(t)
			run(t, k, kit.Composite{Sync: seen(k).URL, Customize: rules(k).URL})
			k.Apply(relating("web", row.rules))
			k.Apply(relating("well", ""))
			await(k, "Web", "well", "status.observedGeneration", "1")
			k.AwaitFault("Web", "web", row.reason, row.part)
			k.Patch("Web", "web", "spec: {rules: []}")
			k.AwaitSynced("Web", "web")
		})
	}
}

// TestRelatedResourceAppears waits for a related resource that is not served yet, without a
// restart.
func TestRelatedResourceAppears(t *testing.T) {
	k := start(t)
	run(t, k, kit.Composite{Sync: seen(k).URL, Customize: rules(k).URL})
	k.Apply(relating("web", "{apiVersion: $GROUP/v1, resource: balls}"))
	k.Eventually("the parent waits", func() error {
		if c := kit.Condition(k.Get("Web", "web"), "Synced"); c["status"] != "False" {
			return fmt.Errorf("its condition is %v", c)
		}
		return nil
	})
	k.CRD("Ball", "Namespaced")
	k.Object("Ball", "ball").Apply()
	await(k, "Web", "web", "status.seen", "Ball."+k.Group+"/v1: ball")
}

// TestDecoratorWithRelatedObjects passes them to decorators, too.
func TestDecoratorWithRelatedObjects(t *testing.T) {
	k := start(t)
	customize := rules(k)
	k.CRD("Web", "Namespaced")
	decorate(t, k, "", "", ", customize: {webhook: {url: \""+customize.URL+"\"}}")
	k.Apply(`
apiVersion: $GROUP/v1
kind: Web
metadata:
  name: web
  namespace: $NS
  labels:
    a: b
spec:
  rules:
  - apiVersion: v1
    resource: secrets
`)
	await(k, "Web", "web", "metadata.annotations.seen", "")
	k.Object("v1/Secret", "secret").Apply()
	await(k, "Web", "web", "metadata.annotations.seen", "secret")
}

// TestRelatedResourcesAreWatchedOnDemand reads the metrics of the cache: a related resource is in
// the cache as long as a parent refers to it.
func TestRelatedResourcesAreWatchedOnDemand(t *testing.T) {
	k := start(t)
	k.CRD("Ball", "Namespaced")
	k.Object("Ball", "ball").Apply()
	engine, labels := ownEngine(k)
	run(t, k, kit.Composite{Sync: seen(k).URL, Customize: rules(k).URL, Labels: labels})
	series := `hookloop_cache_objects{resource="balls.` + k.Group + `/v1"} 1`
	awaitWatched := func() {
		t.Helper()
		k.Eventually("balls are watched", func() error {
			text, err := serve.Fetch(t.Context(), "http://"+engine.Metrics+"/metrics")
			if err == nil && !strings.Contains(text, series) {
				err = errors.New("they are not")
			}
			return err
		})
	}
	awaitUnwatched := func() {
		t.Helper()
		k.Eventually("balls are not watched", func() error {
			text, err := serve.Fetch(t.Context(), "http://"+engine.Metrics+"/metrics")
			if err == nil && strings.Contains(text, series) {
				err = errors.New("they are")
			}
			return err
		})
	}
	const rule = "{apiVersion: $GROUP/v1, resource: balls}"
	saw := "Ball." + k.Group + "/v1: ball"
	k.Apply(relating("none", ""))
	await(k, "Web", "none", "status.observedGeneration", "1")
	awaitUnwatched()
	k.Apply(relating("first", rule))
	k.Apply(relating("second", rule))
	await(k, "Web", "first", "status.seen", saw)
	await(k, "Web", "second", "status.seen", saw)
	awaitWatched()
	k.Patch("Web", "first", "spec: {rules: []}")
	await(k, "Web", "first", "status.seen", "")
	awaitWatched()
	k.Delete("Web", "second")
	awaitUnwatched()
	k.Apply(relating("third", rule))
	await(k, "Web", "third", "status.seen", saw)
}

// TestWrongCustomizeAnswer has a customize hook with one wrong answer, like a faulty build. The
// next resync repairs the parent without a change by a user.
func TestWrongCustomizeAnswer(t *testing.T) {
	k := start(t)
	var mended atomic.Bool
	customize := k.Hook(func(kit.Request) any {
		rules := []any{}
		if mended.Load() {
			rules = append(rules, map[string]any{"apiVersion": "v1", "resource": "configmaps", "names": []any{"first"}})
		}
		return map[string]any{"relatedResources": rules}
	})
	run(t, k, kit.Composite{Sync: seen(k).URL, Customize: customize.URL, Resync: 1})
	k.Apply(source("first", "use: here"))
	k.Apply(relating("web", ""))
	k.Eventually("the hook has answered wrongly", func() error {
		if customize.Asked("web") == 0 {
			return errors.New("it was not asked")
		}
		return nil
	})
	mended.Store(true)
	await(k, "Web", "web", "status.seen", "ConfigMap.v1: first")
}
