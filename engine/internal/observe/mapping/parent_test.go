package mapping

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/observe/parts"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/viewtest"
	"github.com/hookloop/hookloop/engine/object"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"
)

// noKeys is a queue that drops its keys.
type noKeys struct{}

func (noKeys) Part(hook.Key)                  {}
func (noKeys) Parent(hook.Key, time.Duration) {}

const pagesOfMaps = `
apiVersion: metacontroller.k8s.io/v1alpha1
kind: MapController
metadata: {name: copy}
spec:
  parentResource: {apiVersion: example.com/v1, resource: copies}
  inputResources: [{apiVersion: v1, resource: configmaps}, {apiVersion: v1, resource: secrets}]
  outputResources: [{apiVersion: example.com/v1, resource: pages}]
  hooks: {map: {webhook: {url: 'http://h/'}}, finalize: {webhook: {url: 'http://h/'}}}
`

// newCopy is the parent, with the finalizer.
const newCopy = `{apiVersion: example.com/v1, kind: Copy, metadata: {name: p, namespace: shop, uid: u,
	resourceVersion: "1", generation: 1, finalizers: [metacontroller.io/mapcontroller-copy]}}`

// own is the parent's own key beside its parent and two inputs.
type own struct {
	t       *testing.T
	shape   *Shape
	parent  *object.Object
	objects []*object.Object
	clock   *clocktesting.FakePassiveClock
}

// newOwn returns them. The status is that of the parent, as YAML.
func newOwn(t *testing.T, status string) *own {
	t.Helper()
	s, err := declare(t, pagesOfMaps)
	if err != nil {
		t.Fatal(err)
	}
	s.rules.Resource.HasStatus = true
	w := &own{t: t, shape: s, clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0))}
	s.tracker.Start(w.clock, noKeys{})
	w.edit("metadata: {labels: {}}\nstatus: " + status)
	for _, name := range []string{"a", "b"} {
		w.objects = append(w.objects, decodeYAML(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, "+
			"metadata: {name: %s, namespace: shop, uid: %s, resourceVersion: '1'}}", name, name)))
	}
	return w
}

// edit replaces fields of the parent.
func (w *own) edit(fields string) {
	w.t.Helper()
	body := map[string]any{}
	if w.parent != nil {
		var err error
		body, err = w.parent.Map()
		if err != nil {
			w.t.Fatal(err)
		}
	} else if err := yaml.Unmarshal([]byte(newCopy), &body); err != nil {
		w.t.Fatal(err)
	}
	var patch map[string]any
	if err := yaml.Unmarshal([]byte(fields), &patch); err != nil {
		w.t.Fatal(err)
	}
	for name, value := range patch {
		if more, ok := value.(map[string]any); ok && name == "metadata" {
			for key, v := range more {
				body["metadata"].(map[string]any)[key] = v
			}
			continue
		}
		body[name] = value
	}
	data, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	w.parent, err = object.Decode(data)
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *own) key(part string) hook.Key { return hook.Key{Parent: w.parent.Ref(), Part: part} }

// sync syncs the parent's own key and returns its desired state.
func (w *own) sync() *plan.Desired {
	w.t.Helper()
	reader := viewtest.NewReader(append([]*object.Object{w.parent}, w.objects...)...)
	in := shape.Input{Reader: reader, Key: w.key("")}
	observed, err := w.shape.Observe(in)
	if err != nil {
		w.t.Fatal(err)
	}
	if q := w.shape.Questions(observed); len(q) > 0 {
		w.t.Errorf("questions %v about the own key, want none", q)
	}
	desired, err := w.shape.Desired(plan.Input{Observed: observed}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return desired
}

// ends ends the sync of the parts a and b.
func (w *own) ends(a, b parts.Result) {
	for name, r := range map[string]parts.Result{"a": a, "b": b} {
		w.shape.tracker.Begin(w.key("ConfigMap/shop/" + name))
		w.shape.tracker.End(w.key("ConfigMap/shop/"+name), r)
	}
}

// shown formats a desired status as YAML, with the condition Synced in one line.
func shown(d *plan.Desired) string {
	if d.StatusLater || d.Status == nil {
		return fmt.Sprintf("no status, later: %v", d.StatusLater)
	}
	data, err := yaml.Marshal(d.Status)
	if err != nil {
		return err.Error()
	}
	c := d.Conditions[0]
	return string(data) + fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
}

var done = parts.Result{Converged: true}

// TestParentStatus is the status of a parent of two inputs, in the course of its round.
func TestParentStatus(t *testing.T) {
	broken := parts.Result{Fault: "f", Reason: "HookFailed", Message: "status 500"}
	tests := []struct {
		name, present string
		do            func(*own)
		want          string
	}{
		{"a round that has just begun", `{}`, func(*own) {}, "no status, later: true"},
		{
			"a round that takes a while", `{mine: 1, observedGeneration: 7}`,
			func(w *own) { w.clock.SetTime(w.clock.Now().Add(time.Second)) },
			`inputs:
  configmaps:
    total: 2
  secrets:
    total: 0
mine: 1
observedGeneration: 7
outputs:
  pages:
    total: 0
progress:
  synced: 0
  total: 2
Synced=Unknown Progressing: not all inputs are synced since the parent changed; status.progress counts them`,
		},
		{
			"all parts are synced", `{}`, func(w *own) { w.ends(done, done) },
			`inputs:
  configmaps:
    total: 2
  secrets:
    total: 0
observedGeneration: 1
outputs:
  pages:
    total: 0
Synced=True ReconcileSuccess: the last sync of no input failed`,
		},
		{
			"a resync that begins before the status has the end of the round before", `{}`, func(w *own) {
				w.ends(done, done)
				w.shape.tracker.Resync(w.parent.Ref())
				w.sync()
				w.clock.SetTime(w.clock.Now().Add(time.Second))
			},
			`inputs:
  configmaps:
    total: 2
  secrets:
    total: 0
observedGeneration: 1
outputs:
  pages:
    total: 0
progress:
  synced: 0
  total: 2
Synced=True ReconcileSuccess: the last sync of no input failed`,
		},
		{
			"one part has failed", `{failed: {total: 9}}`, func(w *own) { w.ends(done, broken) },
			`failed:
  first:
  - input: ConfigMap/shop/b
    message: status 500
    reason: HookFailed
  total: 1
inputs:
  configmaps:
    total: 2
  secrets:
    total: 0
observedGeneration: 1
outputs:
  pages:
    total: 0
Synced=False PartsFailed: the last sync of 1 inputs failed: ConfigMap/shop/b: status 500`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newOwn(t, test.present)
			w.sync()
			test.do(w)
			if diff := cmp.Diff(test.want, shown(w.sync())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestParentStatusInterval changes the status of a parent twice within a second: the second change
// waits. A status that is as desired is no change.
func TestParentStatusInterval(t *testing.T) {
	w := newOwn(t, `{}`)
	w.sync()
	w.ends(done, done)
	first := w.sync()
	if first.StatusLater || first.InProgress {
		t.Fatalf("the first status is %+v, want it now", first)
	}
	status, err := yaml.Marshal(first.Status)
	if err != nil {
		t.Fatal(err)
	}
	c := first.Conditions[0]
	w.edit("status: " + strings.ReplaceAll("\n"+strings.TrimSpace(string(status)), "\n", "\n  ") +
		fmt.Sprintf("\n  conditions: [{type: Synced, status: 'True', reason: %s, message: %s}]", c.Reason, c.Message))
	if d := w.sync(); d.StatusLater {
		t.Error("the status is as desired, and waits")
	}
	w.ends(done, parts.Result{Fault: "f", Reason: "R", Message: "m"})
	if d := w.sync(); !d.StatusLater {
		t.Error("the status changes twice within a second")
	}
	w.clock.SetTime(w.clock.Now().Add(time.Second))
	if d := w.sync(); d.StatusLater {
		t.Error("the status waits for longer than a second")
	}
}

// TestParentOfAnotherController has parents with a status that is not the engine's.
func TestParentOfAnotherController(t *testing.T) {
	for name, change := range map[string]func(*Shape){
		"a built-in kind":       func(s *Shape) { s.custom = func(object.Resource) bool { return false } },
		"no status subresource": func(s *Shape) { s.rules.Resource.HasStatus = false },
	} {
		w := newOwn(t, `{}`)
		change(w.shape)
		w.sync()
		w.ends(done, done)
		if d := w.sync(); d.Status != nil || d.StatusLater || d.InProgress {
			t.Errorf("%s: %+v, want no status", name, d)
		}
	}
}

// TestParentFinalizer removes the finalizer when the finalize hook has finished with all parts.
func TestParentFinalizer(t *testing.T) {
	w := newOwn(t, `{}`)
	w.sync()
	w.ends(done, done)
	w.edit("metadata: {deletionTimestamp: '2026-01-01T00:00:00Z', generation: 2}")
	finalized := parts.Result{Converged: true, Finalized: true}
	if d := w.sync(); d.RemoveFinalizer != "" {
		t.Error("the finalizer goes before the hook is asked")
	}
	w.ends(finalized, done)
	if w.sync().RemoveFinalizer != "" {
		t.Error("the finalizer goes before the hook has finished with all parts")
	}
	w.ends(finalized, finalized)
	if w.sync().RemoveFinalizer != FinalizerPrefix+"copy" {
		t.Error("the finalizer stays after the hook has finished with all parts")
	}
}

// TestRoundWaitsForTheFinalizer has a parent without the finalizer: no round of its parts begins.
func TestRoundWaitsForTheFinalizer(t *testing.T) {
	w := newOwn(t, `{}`)
	w.edit("metadata: {finalizers: []}")
	if d := w.sync(); !d.StatusLater || !d.InProgress {
		t.Errorf("%+v, want nothing yet", d)
	}
	if _, begun := w.shape.tracker.Summary(w.parent.Ref()); begun {
		t.Error("a round began without the finalizer")
	}
}

// TestFailuresWithoutDescription has failures of which none is described, because the described
// ones have recovered.
func TestFailuresWithoutDescription(t *testing.T) {
	const want = "the last sync of 95 inputs failed"
	if c := syncedCondition(&parts.Summary{Failed: 95}); c.Message != want {
		t.Errorf("the message is %q, want %q", c.Message, want)
	}
}

// TestFailureOfAHugeMapKey has a failure of outputs that a user has marked with a huge map key. The
// status stays small.
func TestFailureOfAHugeMapKey(t *testing.T) {
	next := map[string]any{}
	sum := parts.Summary{Failed: 1, Failures: []parts.Failure{{Part: strings.Repeat("é", 100_000), Message: "m"}}}
	addFailures(next, &sum)
	name := next["failed"].(map[string]any)["first"].([]any)[0].(map[string]any)["input"].(string)
	if len(name) > 1000 || !utf8.ValidString(name) {
		t.Errorf("the input has a name of %d bytes, valid: %t", len(name), utf8.ValidString(name))
	}
	if c := syncedCondition(&sum); len(c.Message) > 1000 {
		t.Errorf("the message has %d bytes", len(c.Message))
	}
}
