package mapping

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/viewtest"
	"github.com/hookloop/hookloop/engine/object"
)

func declared(t testing.TB, text string) *Shape {
	t.Helper()
	s, err := declare(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// copyOf is a parent with a spec; configMap an input with metadata in JSON.
func copyOf(t testing.TB, name, spec string) *object.Object {
	t.Helper()
	return decodeYAML(t, fmt.Sprintf(
		`{apiVersion: example.com/v1, kind: Copy, metadata: {namespace: shop, name: %s, uid: %s-uid}, spec: %s}`,
		name, name, spec))
}

func configMap(t testing.TB, metadata string) *object.Object {
	t.Helper()
	return decodeYAML(t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, %s}}`, metadata))
}

func shownKeys(keys []hook.Key) []string {
	all := []string{}
	for _, key := range keys {
		all = append(all, key.String())
	}
	slices.Sort(all)
	return all
}

// TestInputEvents: an event of an input enqueues its parts of the parents that select it, or did.
func TestInputEvents(t *testing.T) {
	x := newSelections(declared(t, copier))
	x.track(nil, copyOf(t, "me", `{selector: {matchLabels: {copy: me}}}`))
	x.track(nil, copyOf(t, "all", `{}`))
	x.track(nil, copyOf(t, "bad", `{selector: 7}`))
	const mine, yours = `namespace: shop, labels: {copy: me}`, `namespace: shop, labels: {copy: you}`
	owned := `namespace: shop, labels: {copy: me}, ownerReferences: [{apiVersion: example.com/v1, kind: Copy, ` +
		`name: all, uid: all-uid, controller: true}]`
	const ofMe, ofAll = "shop/me#ConfigMap/shop/a", "shop/all#ConfigMap/shop/a"
	for name, test := range map[string]struct {
		old, current string
		want         []string
	}{
		"it is created":                  {"", mine, []string{ofAll, ofMe}},
		"it is deleted":                  {mine, "", []string{ofAll, ofMe}},
		"it is changed":                  {mine, mine, []string{ofAll, ofMe}},
		"it loses its label":             {mine, yours, []string{ofAll, ofMe}},
		"it gets its label":              {yours, mine, []string{ofAll, ofMe}},
		"another label":                  {yours, yours, []string{ofAll}},
		"another namespace":              {"", `namespace: other, labels: {copy: me}`, []string{}},
		"a parent controls it":           {"", owned, []string{ofMe}},
		"a parent no longer controls it": {owned, mine, []string{ofAll, ofMe}},
	} {
		var old, current *object.Object
		if test.old != "" {
			old = configMap(t, test.old)
		}
		if test.current != "" {
			current = configMap(t, test.current)
		}
		if diff := cmp.Diff(test.want, shownKeys(x.inputs(old, current))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	x.track(copyOf(t, "me", `{}`), nil)
	x.track(copyOf(t, "all", `{}`), copyOf(t, "all", `{selector: {matchLabels: {copy: you}}}`))
	if got := shownKeys(x.inputs(nil, configMap(t, mine))); len(got) > 0 {
		t.Errorf("after one parent is gone and the other selects others: %v", got)
	}
	if len(x.byParent) != 1 {
		t.Errorf("the index has %d parents, want 1", len(x.byParent))
	}
}

// TestOutputEvents: an event of an output enqueues its part, and its part before the event.
func TestOutputEvents(t *testing.T) {
	s := declared(t, copier)
	output := func(controller, label, annotation, more string) string {
		return fmt.Sprintf(`namespace: shop, labels: {%q: %q}, annotations: {%q: %q, %q: %q}, ownerReferences: [`+
			`{apiVersion: example.com/v1, kind: Copy, name: all, uid: all-uid, controller: true}]%s`,
			plan.MapKey, label, plan.MapKey, annotation, plan.MapController, controller, more)
	}
	const a, b = "ConfigMap/shop/a", "ConfigMap/shop/b"
	const ofA, ofB = "shop/all#" + a, "shop/all#" + b
	intact := output("copy", Hash(a), a, "")
	for name, test := range map[string]struct {
		old, current string
		want         []string
	}{
		"it is created":              {"", intact, []string{ofA}},
		"it is deleted":              {intact, "", []string{ofA}},
		"it becomes another input's": {intact, output("copy", Hash(b), b, ""), []string{ofA, ofB}},
		"the annotation is edited":   {intact, output("copy", Hash(a), b, ""), []string{"shop/all##" + Hash(a), ofA}},
		"the label is edited":        {"", output("copy", "mine", a, ""), []string{ofA}},
		"all marks are edited":       {intact, output("copy", "mine", "mine", ""), []string{ofA}},
		"it is another controller's": {"", output("other", Hash(a), a, ""), []string{}},
		"nobody owns it": {
			"", strings.ReplaceAll(intact, "controller: true", "controller: false"), []string{},
		},
		"another resource owns it":       {"", strings.ReplaceAll(intact, "kind: Copy", "kind: Web"), []string{}},
		"an owner without its own marks": {"", `namespace: shop`, []string{}},
	} {
		var old, current *object.Object
		if test.old != "" {
			old = configMap(t, test.old)
		}
		if test.current != "" {
			current = configMap(t, test.current)
		}
		if diff := cmp.Diff(test.want, shownKeys(s.owners()(old, current))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

const clusterCopier = `
apiVersion: metacontroller.k8s.io/v1alpha1
kind: MapController
metadata: {name: copy}
spec:
  parentResource: {apiVersion: example.com/v1, resource: clustercopies}
  inputResources: [{apiVersion: v1, resource: configmaps}, {apiVersion: v1, resource: namespaces}]
  outputResources: [{apiVersion: v1, resource: secrets}]
  hooks: {map: {webhook: {url: http://hook/map}}}
`

// TestNamespaceEvents: an event of a namespace enqueues the parts of its objects for the parents
// that select the namespace only before or only after it.
func TestNamespaceEvents(t *testing.T) {
	s := declared(t, clusterCopier)
	x := newSelections(s)
	parent := func(name, spec string) *object.Object {
		return decodeYAML(t, fmt.Sprintf(
			`{apiVersion: example.com/v1, kind: ClusterCopy, metadata: {name: %s, uid: %s-uid}, spec: %s}`, name, name, spec))
	}
	namespace := func(labels string) *object.Object {
		return decodeYAML(t, `{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {`+labels+`}}}`)
	}
	x.track(nil, parent("blue", `{namespaceSelector: {matchLabels: {team: blue}}}`))
	x.track(nil, parent("blue-me",
		`{selector: {matchLabels: {copy: me}}, namespaceSelector: {matchLabels: {team: blue}}}`))
	x.track(nil, parent("everywhere", `{}`))
	reader := viewtest.NewReader(configMap(t, `namespace: shop, labels: {copy: you}`), configMap(t, `namespace: other`))
	const ofBlue, ofAll = "blue#ConfigMap/shop/a", "everywhere#ConfigMap/shop/a"
	var blue, red, none *object.Object = namespace("team: blue"), namespace("team: red"), nil
	for _, step := range []struct {
		name         string
		old, current *object.Object
		want, input  []string
	}{
		{"a new one that is not selected", none, red, []string{}, []string{ofAll}},
		{"it is selected now", red, blue, []string{ofBlue},
			[]string{ofBlue, ofAll}},
		{"nothing has changed", blue, blue, []string{}, nil},
		{"another label", blue, namespace("team: blue, tier: web"), []string{}, nil},
		{"it is no longer selected", blue, red, []string{ofBlue}, []string{ofAll}},
		{"it comes back", none, blue, []string{ofBlue}, nil},
		{"it is gone", blue, none, []string{ofBlue}, nil},
	} {
		changed := x.namespaceEvent(step.old, step.current)
		keys, err := x.partsIn(reader, "shop", changed)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, shownKeys(keys)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		if step.input == nil {
			continue
		}
		if diff := cmp.Diff(step.input, shownKeys(x.inputs(nil, reader.Objects[0]))); diff != "" {
			t.Errorf("%s: then an event of an input (-want +got):\n%s", step.name, diff)
		}
	}
}
