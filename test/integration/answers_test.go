package integration

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/test/kit"
)

// webAnswering returns a Web with the answer of its hook, in YAML.
func webAnswering(name, answer string) string {
	return "apiVersion: $GROUP/v1\nkind: Web\nmetadata: {name: " + name + ", namespace: $NS}\n" +
		"spec: {answer: {" + answer + "}}"
}

// awaitCondition waits for a condition of a Web; message is a part of it, with the kit's names.
func awaitCondition(k *kit.Kit, name, of, status, message string) map[string]any {
	k.Helper()
	var c map[string]any
	k.Eventually(fmt.Sprintf("Web %s has the condition %s=%s: %s", name, of, status, message), func() error {
		c = kit.Condition(k.Get("Web", name), of)
		if text, _ := c["message"].(string); c["status"] != status || !strings.Contains(text, k.Expand(message)) {
			return fmt.Errorf("it is %v", c)
		}
		return nil
	})
	return c
}

// TestConditionsOfTheHook puts the conditions into the parent's status, and writes nothing while
// they stay the same.
func TestConditionsOfTheHook(t *testing.T) {
	eachAnswerer(t, func(t *testing.T, k *kit.Kit, h answerer) {
		runAnswerer(t, k, h)
		ready := "conditions: [{type: Ready, status: 'STATUS', reason: AllUp, message: all is well}], status: {phase: up}"
		k.Apply(webAnswering("web", strings.Replace(ready, "STATUS", "True", 1)))
		first := awaitCondition(k, "web", "Ready", "True", "all is well")
		if first["reason"] != "AllUp" || first["lastTransitionTime"] == nil || first["observedGeneration"] != int64(1) {
			t.Errorf("the condition is %v", first)
		}
		await(k, "Web", "web", "status.phase", "up")
		k.Settled(settled)
		k.NoWrites(func() { h.again(k, "web") })

		k.Patch("Web", "web", "spec: {more: yes}")
		k.Eventually("the condition is about the new generation", func() error {
			if c := kit.Condition(k.Get("Web", "web"), "Ready"); c["observedGeneration"] != int64(2) ||
				c["lastTransitionTime"] != first["lastTransitionTime"] {
				return fmt.Errorf("it is %v, it was %v", c, first)
			}
			return nil
		})
		k.Apply(webAnswering("web", strings.Replace(ready, "STATUS", "Unknown", 1)))
		awaitCondition(k, "web", "Ready", "Unknown", "all is well")
		k.Patch("Web", "web", "spec: {answer: {conditions: []}}")
		k.Eventually("a condition missing in the answer is removed", func() error {
			if c := kit.Condition(k.Get("Web", "web"), "Ready"); c != nil {
				return fmt.Errorf("it is %v", c)
			}
			return nil
		})
	})
}

// TestEventsAreRecordedOnce records new Events only: an answer that repeats the last one records
// nothing.
func TestEventsAreRecordedOnce(t *testing.T) {
	eachAnswerer(t, func(t *testing.T, k *kit.Kit, h answerer) {
		runAnswerer(t, k, h)
		first := "{type: Normal, reason: Scaled, message: from 1 to 2}"
		result := "results: [{severity: Warning, reason: Deprecated, message: the field is old}, {severity: Info, " +
			"reason: Quiet, message: nothing}]"
		k.Apply(webAnswering("web", "events: ["+first+"], "+result))
		recorded := func(reason string, want ...string) {
			t.Helper()
			k.Eventually("there are Events "+reason, func() error {
				if diff := cmp.Diff(want, recordings(k, reason)); diff != "" {
					return errors.New(diff)
				}
				return nil
			})
		}
		recorded("Scaled", "1x from 1 to 2")
		recorded("Deprecated", "1x the field is old")
		h.again(k, "web")
		k.Apply(webAnswering("web", "events: ["+first+", {type: Warning, reason: Scaled, message: from 2 to 3}], "+result))
		// Events are sent in order: a repeated one would have been counted by now
		recorded("Scaled", "1x from 1 to 2", "1x from 2 to 3")
		recorded("Deprecated", "1x the field is old")
		if events := k.Events("web", "Quiet"); len(events) > 0 {
			t.Errorf("a result for the log is an Event: %q", events)
		}
	})
}

// recordings returns the Events with a reason in the kit's namespace, with their counts.
func recordings(k *kit.Kit, reason string) []string {
	k.Helper()
	var all []string
	for _, e := range k.List("v1/Event") {
		if e.Object["reason"] == reason {
			all = append(all, fmt.Sprintf("%vx %v", e.Object["count"], e.Object["message"]))
		}
	}
	return sorted(all)
}

// TestFatalResultWritesNothing rejects an answer with a fatal result, with the hook's own reason.
func TestFatalResultWritesNothing(t *testing.T) {
	eachAnswerer(t, func(t *testing.T, k *kit.Kit, h answerer) {
		runAnswerer(t, k, h)
		mark := k.Mark()
		k.Apply(
			webAnswering(
				"web",
				"children: ["+page(
					"page",
					"text: one",
				)+"], status: {phase: up}, results: [{severity: Fatal, reason: NoQuota, message: the account is empty}]",
			),
		)
		k.AwaitFault("Web", "web", "NoQuota", "the account is empty")
		if writes := k.ChildWrites(mark); len(writes) > 0 {
			t.Errorf("writes %q, want none", writes)
		}
		if phase := field(k, "Web", "web", "status.phase"); phase != "" {
			t.Errorf("the status of the answer was written: phase %q", phase)
		}
		k.Patch("Web", "web", "spec: {answer: {results: null}}")
		await(k, "v1/ConfigMap", "page", "data.text", "one")
		k.AwaitSynced("Web", "web")
	})
}

// website holds a ConfigMap, a Deployment that depends on it, and a Service that depends on the
// Deployment's condition Tested.
const website = `children: [
  {apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}},
  {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 0, selector: {matchLabels: {a: b}},
   template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}},
  {apiVersion: v1, kind: ConfigMap, metadata: {name: web}}],
  childStates: [
  {apiVersion: v1, kind: Service, name: web,
   dependsOn: [{apiVersion: apps/v1, kind: Deployment, name: web, condition: Tested}]},
  {apiVersion: apps/v1, kind: Deployment, name: web, dependsOn: [{apiVersion: v1, kind: ConfigMap, name: web}]}]`

// buildWebsite creates a website in waves.
func buildWebsite(t *testing.T, k *kit.Kit, h answerer) {
	t.Helper()
	runAnswerer(t, k, h)
	mark := k.Mark()
	k.Apply(webAnswering("web", website))
	awaitCondition(k, "web", "DependenciesMet", "False",
		`Service.v1 "$NS/web" waits for Deployment.apps/v1 "$NS/web", which has no condition Tested`)
	if k.Find("v1/Service", "web") != nil {
		t.Error("the Service is there before the Deployment is tested")
	}
	k.Patch("apps/v1/Deployment", "web", "status: {conditions: [{type: Tested, status: 'True'}]}", "status")
	await(k, "v1/Service", "web", "metadata.name", "web")
	awaitCondition(k, "web", "DependenciesMet", "True", "no object waits for another")
	k.Settled(settled)
	if diff := cmp.Diff([]string{"create configmaps web", "create deployments web", "create services web"},
		k.ChildWrites(mark)); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

var demolished = []string{"delete services web", "delete deployments web", "delete configmaps web"}

// TestWaves creates children after their dependencies are ready, then leaves them alone, and
// deletes them in reverse order.
func TestWaves(t *testing.T) {
	eachAnswerer(t, func(t *testing.T, k *kit.Kit, h answerer) {
		buildWebsite(t, k, h)
		k.NoWrites(func() { h.again(k, "web") })

		mark := k.Mark()
		k.Patch("Web", "web", "spec: {answer: {children: [], childStates: []}}")
		await(k, "v1/ConfigMap", "web", "metadata.name", "")
		k.Settled(settled)
		if diff := cmp.Diff(demolished, k.ChildWrites(mark)); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
		k.Eventually("the answer has no dependencies", func() error {
			if c := kit.Condition(k.Get("Web", "web"), "DependenciesMet"); c != nil {
				return fmt.Errorf("the condition is %v", c)
			}
			return nil
		})
	})
}

// TestWavesOfAParentThatGoes keeps the parent's finalizer until the last wave is deleted, even if
// the hook answers finalized earlier.
func TestWavesOfAParentThatGoes(t *testing.T) {
	eachAnswerer(t, func(t *testing.T, k *kit.Kit, h answerer) {
		buildWebsite(t, k, h)
		k.Patch("Web", "web", "spec: {finally: {children: [], finalized: true}}")
		k.Settled(settled)
		mark := k.Mark()
		k.Delete("Web", "web")
		k.Eventually("the Web is gone", func() error {
			if k.Find("Web", "web") != nil {
				return errors.New("it is there")
			}
			return nil
		})
		if diff := cmp.Diff(demolished, k.ChildWrites(mark)); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}

// TestReadyOfTheHook prefers the hook's ready to the child's conditions.
func TestReadyOfTheHook(t *testing.T) {
	eachAnswerer(t, func(t *testing.T, k *kit.Kit, h answerer) {
		runAnswerer(t, k, h)
		pages := "children: [" + page("first", "a: b") + ", " + page("second", "a: b") + `], childStates: [
			{apiVersion: v1, kind: ConfigMap, name: first, ready: READY},
			{apiVersion: v1, kind: ConfigMap, name: second,
			dependsOn: [{apiVersion: v1, kind: ConfigMap, name: first, condition: Never}]}]`
		k.Apply(webAnswering("web", strings.Replace(pages, "READY", "false", 1)))
		awaitCondition(k, "web", "DependenciesMet", "False",
			`ConfigMap.v1 "$NS/second" waits for ConfigMap.v1 "$NS/first", which is not ready, says its hook`)
		k.Apply(webAnswering("web", strings.Replace(pages, "READY", "true", 1)))
		await(k, "v1/ConfigMap", "second", "data.a", "b")
	})
}

// TestAnswersThatSayTooMuch are refused whole, by the name of the item.
func TestAnswersThatSayTooMuch(t *testing.T) {
	pages := "children: [" + page("a", "x: y") + ", " + page("b", "x: y") + "], "
	depends := func(name, on string) string {
		return "{apiVersion: v1, kind: ConfigMap, name: " + name +
			", dependsOn: [{apiVersion: v1, kind: ConfigMap, name: " + on + "}]}"
	}
	rows := map[string]struct{ answer, part string }{
		"circle": {
			"childStates: [" + depends("a", "b") + ", " + depends("b", "a") + "]",
			`the dependencies go in a circle: ConfigMap.v1 "$NS/a" → ConfigMap.v1 "$NS/b" → ConfigMap.v1 "$NS/a"`,
		},
		"itself": {"childStates: [" + depends("a", "a") + "]", `children[0] ConfigMap.v1 "$NS/a": depends on itself`},
		"stranger": {
			"childStates: [" + depends("b", "c") + "]",
			`children[1] ConfigMap.v1 "$NS/b": depends on ConfigMap.v1 "$NS/c", which is not desired`,
		},
		"ours": {
			"conditions: [{type: Synced, status: 'True', reason: A, message: m}]",
			`conditions[0] "Synced": belongs to the engine`,
		},
		"twice": {
			"conditions: [{type: A, status: 'True', reason: A, message: m}, {type: A, status: 'True', reason: A, message: m}]",
			`conditions[1] "A": is said twice`,
		},
		"status": {
			"conditions: [{type: A, status: 'Yes', reason: A, message: m}]",
			`status is "Yes"; expected True, False or Unknown`,
		},
		"sentence": {"events: [{type: Normal, reason: a b, message: m}]", `events[0]: reason is "a b"; expected one word`},
		"badly":    {"results: [{severity: Info, reason: '', message: m}]", `results[0]: reason is ""`},
		"selectors": {
			"requirements: [{apiVersion: v1, resource: configmaps, names: [''], name: settings}]",
			`requirements[0] "settings": names has an empty name`,
		},
	}
	eachAnswerer(t, func(t *testing.T, k *kit.Kit, h answerer) {
		runAnswerer(t, k, h)
		mark := k.Mark()
		sent := maps.Clone(rows)
		if h.version == "" { // the contract has an enum, and the SDK knows its values
			delete(sent, "status")
		}
		for name, row := range sent {
			k.Apply(webAnswering(name, pages+row.answer))
		}
		for name, row := range sent {
			k.AwaitFault("Web", name, "InvalidHookAnswer", k.Expand(row.part))
		}
		if writes := k.ChildWrites(mark); len(writes) > 0 {
			t.Errorf("writes %q, want none", writes)
		}
	})
}

// TestRequirements passes a hook the objects that its own answers require, and syncs when they
// change.
func TestRequirements(t *testing.T) {
	const settings = "{apiVersion: v1, resource: configmaps, namespace: $NS, names: [settings, more], name: settings}"
	eachAnswerer(t, func(t *testing.T, k *kit.Kit, h answerer) {
		runAnswerer(t, k, h)
		k.Apply(source("settings", ""))
		k.Apply(webAnswering("web", "requirements: ["+settings+"]"))
		await(k, "Web", "web", "status.seen", "settings")
		k.Apply(source("more", ""))
		await(k, "Web", "web", "status.seen", "more settings")
		k.Settled(settled)
		k.NoWrites(func() { h.again(k, "web") })
		k.Delete("v1/ConfigMap", "settings")
		await(k, "Web", "web", "status.seen", "more")

		k.Patch("Web", "web", "spec: {flip: true}")
		k.AwaitFault("Web", "web", "InvalidHookAnswer",
			`the requirements differ from those of the answer before, 5 times in a row: "settings" (configmaps.v1) comes and `+
				`goes`)
		k.Patch("Web", "web", "spec: {flip: false}")
		k.AwaitSynced("Web", "web")
		await(k, "Web", "web", "status.seen", "more")
		k.Patch("Web", "web", "spec: {answer: {requirements: []}}")
		await(k, "Web", "web", "status.seen", "")
	})
}

// TestRequirementsBesideACustomizeHook rejects requirements of a controller with a customize hook.
func TestRequirementsBesideACustomizeHook(t *testing.T) {
	k := start(t)
	hook := k.Hook(answerJSON)
	run(t, k, kit.Composite{Sync: hook.URL, Customize: rules(k).URL, Version: "v2"})
	k.Apply(webAnswering("web", "requirements: [{apiVersion: v1, resource: configmaps}]"))
	k.AwaitFault("Web", "web", "InvalidHookAnswer",
		"requirements: the controller declares a customize hook, too; expected one of both")
}

// TestWebhookV1IgnoresExtras ignores the fields that v1 does not have, like any unknown field.
func TestWebhookV1IgnoresExtras(t *testing.T) {
	k := start(t)
	run(t, k, kit.Composite{})
	k.Apply(
		webAnswering(
			"web",
			"children: ["+page(
				"page",
				"text: one",
			)+"], status: {phase: up}, results: [{severity: Fatal, reason: No, message: no}], conditions: [{type: Ready}]",
		),
	)
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	await(k, "Web", "web", "status.phase", "up")
	if c := kit.Condition(k.Get("Web", "web"), "Ready"); c != nil {
		t.Errorf("the condition is %v", c)
	}
}

// TestDecoratorAnswersExtras merges conditions into the target's own, and creates attachments in
// waves.
func TestDecoratorAnswersExtras(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	decorate(t, k, "", "", "")
	const kind = "metacontroller.k8s.io/v1alpha1/DecoratorController"
	k.Patch(kind, k.Name, "spec: {hooks: {sync: {version: v2}}}")
	k.AwaitReadyOf(kind, v1alpha1.ReasonRunning)
	k.Object("Web", "web").Apply()
	k.Patch("Web", "web", "status: {phase: theirs, conditions: [{type: Theirs, status: 'True'}]}", "status")
	k.Patch(
		"Web",
		"web",
		"metadata: {labels: {a: b}}\nspec: {answer: {conditions: [{type: Ours, status: 'True', reason: Fine, "+
			"message: fine}], attachments: ["+
			page(
				"first",
				"a: b",
			)+", "+page(
			"second",
			"a: b",
		)+"], childStates: [{apiVersion: v1, kind: ConfigMap, name: first, dependsOn: [{apiVersion: v1, kind: ConfigMap, "+
			"name: second}]}]}}",
	)
	awaitCondition(k, "web", "Ours", "True", "fine")
	awaitCondition(k, "web", "Theirs", "True", "")
	await(k, "Web", "web", "status.phase", "theirs")
	await(k, "v1/ConfigMap", "first", "data.a", "b")
	k.Settled(settled)
	k.NoWrites(func() {
		k.Patch("Web", "web", "metadata: {annotations: {again: 'yes'}}")
		k.Settled(settled)
	})
	if c := kit.Condition(k.Get("Web", "web"), "DependenciesMet"); c != nil {
		t.Errorf("the target has the engine's condition %v", c)
	}
}
