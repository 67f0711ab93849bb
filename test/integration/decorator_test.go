package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/test/kit"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// decorate declares a DecoratorController of Webs, with the kit's name and a suffix, and the mirror
// as its hook. more is added to the first resource rule, and hooks to the hooks. decorate returns
// when the controller runs.
func decorate(t *testing.T, k *kit.Kit, suffix, more, hooks string) {
	t.Helper()
	name := k.Name + suffix
	k.Apply(strings.NewReplacer("NAME", name, "MIRROR", mirror(t)).Replace(`
apiVersion: metacontroller.k8s.io/v1alpha1
kind: DecoratorController
metadata: {name: NAME}
spec:
  resyncPeriodSeconds: 1
  resources:
  - {apiVersion: $GROUP/v1, resource: webs` + more + `}
  attachments:
  - {apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}
  - {apiVersion: v1, resource: secrets, updateStrategy: {method: RollingRecreate}}
  hooks: {sync: {webhook: {url: "MIRROR"}}` + hooks + `}
`))
	const kind = "metacontroller.k8s.io/v1alpha1/DecoratorController"
	k.Cleanup(func() { k.Delete(kind, name) })
	k.Eventually("the controller runs", func() error {
		if c := kit.Condition(k.Get(kind, name), "Ready"); c["status"] != "True" {
			return fmt.Errorf("its condition is %v", c)
		}
		return nil
	})
}

// target returns a Web with metadata and an answer, in YAML.
func target(metadata, answer string) string {
	return "apiVersion: $GROUP/v1\nkind: Web\nmetadata: {name: web, namespace: $NS" + metadata + "}\n" +
		"spec: {answer: {" + answer + "}}"
}

func TestDecorator(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	decorate(t, k, "", "", "")
	k.Apply(target(
		", labels: {old: label, foreign: label}, annotations: {old: note}",
		`labels: {old: null, new: label}, annotations: {old: null, new: "a note"}, status: {seen: true}, attachments: [`+page(
			"page",
			"text: one",
		)+`]`,
	))
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	await(k, "Web", "web", "status.seen", "true")
	web := k.Get("Web", "web")
	if diff := cmp.Diff(map[string]string{"foreign": "label", "new": "label"}, web.GetLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"new": "a note"}, web.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	page1 := k.Get("v1/ConfigMap", "page")
	if owner := page1.GetOwnerReferences(); len(owner) != 1 || owner[0].UID != web.GetUID() || !*owner[0].Controller {
		t.Errorf("owners of the attachment are %v", owner)
	}
	if by := page1.GetAnnotations()["metacontroller.k8s.io/decorator-controller"]; by != k.Name {
		t.Errorf("the attachment is %q's, want %q's", by, k.Name)
	}

	mark := k.Mark()
	k.Patch("Web", "web", "spec: {answer: {attachments: ["+page("page", "text: two")+"], status: null}}")
	await(k, "v1/ConfigMap", "page", "data.text", "two")
	k.Delete("v1/ConfigMap", "page")
	await(k, "v1/ConfigMap", "page", "data.text", "two")
	k.Patch("Web", "web", "spec: {answer: {attachments: [], annotations: {end: reached}}}")
	await(k, "v1/ConfigMap", "page", "metadata.name", "")
	await(k, "Web", "web", "metadata.annotations.end", "reached")
	want := []string{"update configmaps page", "create configmaps page", "delete configmaps page"}
	if diff := cmp.Diff(want, k.ChildWrites(mark)); diff != "" {
		t.Errorf("writes to attachments (-want +got):\n%s", diff)
	}
	await(k, "Web", "web", "status.seen", "true") // null leaves it alone
	mark = k.Settled(settled)
	k.Patch("Web", "web", "metadata: {annotations: {somebody: else}}")
	await(k, "Web", "web", "metadata.annotations.somebody", "else")
	k.Settled(2500 * time.Millisecond) // more than two resync periods
	if writes := k.Writes(mark); len(writes) > 0 {
		t.Errorf("writes in a steady state: %v", writes)
	}
}

// TestTargetIsWrittenOnceInASync changes labels and status together: two syncs write the target
// once each.
func TestTargetIsWrittenOnceInASync(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	decorate(t, k, "", "", "")
	mark := k.Mark()
	k.Apply(target("", `labels: {a: b}, annotations: {c: d}, status: {seen: true}`))
	await(k, "Web", "web", "status.seen", "true")
	await(k, "Web", "web", "metadata.labels.a", "b")
	awaitLines(k, "writes to the target", []string{"patch webs/", "patch webs/status"}, func() []string {
		var lines []string
		for _, w := range k.Writes(mark) {
			if w.Name == "web" {
				lines = append(lines, w.Verb+" "+w.Resource+"/"+w.Subresource)
			}
		}
		return lines
	})
}

func TestDecoratorSelects(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	decorate(t, k, "",
		`, labelSelector: {matchLabels: {tier: front}}, annotationSelector: {matchExpressions: [{key: wanted, `+
			`operator: In, values: ["yes, please!"]}]}`,
		"")
	k.Apply(target(", labels: {tier: front}", "attachments: ["+page("page", "text: one")+"]"))
	k.Apply(
		strings.ReplaceAll(
			target(
				`, labels: {tier: front}, annotations: {wanted: "yes, please!"}`,
				"attachments: ["+page("second", "text: one")+"]",
			),
			"name: web",
			"name: other",
		),
	)
	await(k, "v1/ConfigMap", "second", "data.text", "one")
	if k.Find("v1/ConfigMap", "page") != nil {
		t.Error("an object that is not selected was decorated")
	}
	k.Patch("Web", "web", `metadata: {annotations: {wanted: "yes, please!"}}`)
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	// Without a finalize hook, attachments stay when their target is no longer selected.
	k.Patch("Web", "web", "metadata: {labels: {tier: back}}\nspec: {answer: {attachments: []}}")
	k.Patch("Web", "other", "spec: {answer: {attachments: []}}")
	await(k, "v1/ConfigMap", "second", "data.text", "")
	await(k, "v1/ConfigMap", "page", "data.text", "one")
}

// TestTwoDecorators have the same target, and each has its own attachments.
func TestTwoDecorators(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	decorate(t, k, "-a", ", labelSelector: {matchLabels: {a: \"yes\"}}", "")
	k.Apply(target(`, labels: {a: "yes"}`, "attachments: ["+page("page", "text: one")+"]"))
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	k.Patch("Web", "web",
		`metadata: {labels: {a: "no"}}`+"\nspec: {answer: {attachments: ["+page("other", "text: two")+"]}}")
	decorate(t, k, "-b", "", "")
	await(k, "v1/ConfigMap", "other", "data.text", "two")
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	k.Patch("Web", "web", "spec: {answer: {attachments: ["+page("page", "text: mine")+"]}}")
	await(k, "v1/ConfigMap", "other", "data.text", "")
	k.Eventually("the second decorator reports that the name is taken", func() error {
		if len(k.Events("web", "SyncError")) == 0 {
			return errors.New("no Event")
		}
		return nil
	})
	await(k, "v1/ConfigMap", "page", "data.text", "one")
}

func TestDecoratorFinalizes(t *testing.T) {
	parallel(t)
	for name, leave := range map[string]func(*kit.Kit){
		"the target is deleted":            func(k *kit.Kit) { k.Delete("Web", "web") },
		"the target is no longer selected": func(k *kit.Kit) { k.Patch("Web", "web", `metadata: {labels: {a: "no"}}`) },
	} {
		t.Run(name, func(t *testing.T) {
			k := start(t)
			k.CRD("Web", "Namespaced")
			decorate(t, k, "", `, labelSelector: {matchLabels: {a: "yes"}}`, `, finalize: {webhook: {url: "MIRROR"}}`)
			k.Apply(
				target(`, labels: {a: "yes"}, finalizers: [example.com/test]`, "attachments: ["+page("page", "text: one")+"]"))
			await(k, "v1/ConfigMap", "page", "data.text", "one")
			k.Patch("Web", "web", "spec: {finally: {attachments: ["+page("page", "text: bye")+"], finalized: false}}")
			leave(k)
			await(k, "v1/ConfigMap", "page", "data.text", "bye")
			k.Patch("Web", "web", "spec: {finally: {attachments: [], labels: {gone: \"yes\"}, finalized: true}}")
			await(k, "v1/ConfigMap", "page", "data.text", "")
			await(k, "Web", "web", "metadata.finalizers", "[example.com/test]")
			await(k, "Web", "web", "metadata.labels.gone", "yes")
			k.Patch("Web", "web", "metadata: {finalizers: null}")
		})
	}
}

func TestDecoratorOfClusterScopedTargets(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Cluster")
	decorate(t, k, "", "", "")
	k.Apply(`
apiVersion: $GROUP/v1
kind: Web
metadata:
  name: web
spec:
  answer:
    attachments:
    - apiVersion: v1
      kind: ConfigMap
      metadata:
        name: page
        namespace: $NS
      data:
        text: one
`)
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	k.Delete("v1/ConfigMap", "page")
	await(k, "v1/ConfigMap", "page", "data.text", "one")
}

// TestRollingMethodOfAnAttachment has the effect of the method without Rolling.
func TestRollingMethodOfAnAttachment(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	decorate(t, k, "", "", "")
	secret := func(text string) string {
		return "{apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {text: " + text + "}}"
	}
	k.Apply(target("", "attachments: ["+secret("one")+"]"))
	await(k, "v1/Secret", "key", "data.text", "b25l")
	mark := k.Mark()
	k.Patch("Web", "web", "spec: {answer: {attachments: ["+secret("two")+"]}}")
	await(k, "v1/Secret", "key", "data.text", "dHdv")
	awaitSync(k, "web")
	if diff := cmp.Diff([]string{"delete secrets key", "create secrets key"}, k.ChildWrites(mark)); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestBadDecoration(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	decorate(t, k, "", "", "")
	k.Apply(target("", `labels: {"a b": c}, attachments: [`+page("page", "text: one")+"]"))
	k.Eventually("an Event names the label", func() error {
		for _, message := range k.Events("web", "SyncError") {
			if strings.Contains(message, `labels["a b"]`) {
				return nil
			}
		}
		return fmt.Errorf("the Events are %q", k.Events("web", "SyncError"))
	})
	if k.Find("v1/ConfigMap", "page") != nil {
		t.Error("the answer was half applied")
	}
	k.Patch("Web", "web", `spec: {answer: {labels: null}}`)
	await(k, "v1/ConfigMap", "page", "data.text", "one")
}

// TestDecoratorBesideComposite has both kinds with the same parents and the same kind of child:
// neither writes the other's objects.
func TestDecoratorBesideComposite(t *testing.T) {
	k := start(t)
	hook := k.Hook(func(r kit.Request) any {
		name, _, _ := unstructured.NestedString(r.Parent.Object, "spec", "own")
		return map[string]any{"children": []any{configMap(name, "composite")}}
	})
	run(t, k, kit.Composite{Sync: hook.URL, Resync: 1})
	decorate(t, k, "-d", "", "")
	mark := k.Mark()
	k.Apply(
		strings.Replace(target("", "attachments: ["+page("page", "text: decorator")+"]"), "spec: {", "spec: {own: mine, ", 1))
	await(k, "v1/ConfigMap", "page", "data.text", "decorator")
	await(k, "v1/ConfigMap", "mine", "data.text", "composite")
	awaitAsked(k, hook, "web", 3)
	k.Settled(settled)
	if diff := cmp.Diff([]string{"create configmaps mine", "create configmaps page"},
		sorted(k.ChildWrites(mark))); diff != "" {
		t.Errorf("writes to children (-want +got):\n%s", diff)
	}
	k.Patch("Web", "web", "spec: {own: page}")
	k.AwaitFault("Web", "web", "ChildNameTaken", "belongs to another controller of the same parent")
	await(k, "v1/ConfigMap", "page", "data.text", "decorator")
}
