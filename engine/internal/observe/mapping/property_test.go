package mapping

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/viewtest"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
)

// copier copies ConfigMaps and Secrets to ConfigMaps.
const copier = `
apiVersion: metacontroller.k8s.io/v1alpha1
kind: MapController
metadata: {name: copy}
spec:
  parentResource: {apiVersion: example.com/v1, resource: copies}
  inputResources: [{apiVersion: v1, resource: configmaps}, {apiVersion: v1, resource: secrets}]
  outputResources: [{apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}]
  hooks:
    map: {webhook: {url: http://hook/map}}
    tombstone: {webhook: {url: http://hook/tombstone}}
`

// TestPartsEqualOnePass runs random histories: users create, change, rename and delete inputs, edit
// outputs and their marks, and change the selector; the engine syncs one part at a time in any
// order, from a view that lags behind, fails in the middle of a plan, and starts again. In the end
// the outputs are those of one pass over all inputs, from the same state.
func TestPartsEqualOnePass(t *testing.T) {
	for seed := range seeds(200) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			c := newCluster(t, rand.New(rand.NewPCG(seed, 0)))
			for range 120 {
				c.step()
			}
			want := c.onePass()
			c.settle(func() {
				if seed%2 == 0 && c.random.IntN(10) == 0 {
					c.restart()
				}
			})
			if diff := cmp.Diff(want, c.outputs()); diff != "" {
				t.Fatalf("outputs (-one pass +parts):\n%s", diff)
			}
			before := c.version
			c.restart()
			c.settle(func() {})
			if c.version != before {
				t.Error("after a restart parts are written again: an event was missed, or a plan does not converge")
			}
		})
	}
}

// seeds returns the number of random histories: a tenth in a short run.
func seeds(all uint64) uint64 {
	if testing.Short() {
		return all / 10
	}
	return all
}

// cluster is an API server with users, and an engine with one parent.
type cluster struct {
	t       *testing.T
	random  *rand.Rand
	shape   *Shape
	objects map[object.Ref]*object.Object
	version int

	// the engine: its view, as of a version, the parts in its queue, and its memory
	reader  *viewtest.Reader
	shown   map[object.Ref]*object.Object
	seen    int
	queue   map[string]bool
	memory  map[string]*partMemory
	waiting map[string]int // the version that the view must show before the part is synced again
	index   *selections
	log     []string
}

// partMemory is the engine's memory of a part.
type partMemory struct {
	converged *plan.Converged
	previous  plan.Previous
}

var errConflict = errors.New("conflict")

func newCluster(t *testing.T, random *rand.Rand) *cluster {
	t.Helper()
	s, err := declare(t, copier)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, random: random, shape: s, objects: map[object.Ref]*object.Object{}}
	c.put(map[string]any{
		"apiVersion": "example.com/v1", "kind": "Copy", "metadata": map[string]any{"namespace": "shop", "name": "all"},
		"spec": c.anySpec(),
	})
	c.restart()
	return c
}

// parent returns the parent as users see it.
func (c *cluster) parent() *object.Object {
	return c.objects[object.Ref{GVK: c.shape.rules.Resource.GVK, Namespace: "shop", Name: "all"}]
}

// put stores an object with a new version, and with a new UID if it is new.
func (c *cluster) put(body map[string]any) *object.Object {
	c.version++
	metadata := body["metadata"].(map[string]any)
	metadata["resourceVersion"] = fmt.Sprint(c.version)
	if metadata["uid"] == nil {
		metadata["uid"] = fmt.Sprint("uid-", c.version)
	}
	o, err := object.FromMap(body)
	if err != nil {
		c.t.Fatal(err)
	}
	c.objects[o.Ref()] = o
	return o
}

// edit changes an object.
func (c *cluster) edit(o *object.Object, change func(body map[string]any)) {
	body, err := o.Map()
	if err != nil {
		c.t.Fatal(err)
	}
	if o.LastApplied() != "" { // an Object keeps it apart from its body
		set(body["metadata"].(map[string]any), "annotations", object.LastAppliedAnnotation, o.LastApplied())
	}
	change(body)
	c.put(body)
}

func (c *cluster) remove(ref object.Ref) {
	c.version++
	delete(c.objects, ref)
}

// step is one step of a user or of the engine.
func (c *cluster) step() {
	switch n := c.random.IntN(40); {
	case n < 12:
		c.changeInput()
	case n < 20:
		c.editOutput()
	case n < 29:
		c.deliver()
	case n < 38:
		c.syncAny()
	case n < 39:
		c.edit(c.parent(), func(body map[string]any) { body["spec"] = c.anySpec() })
	default:
		c.restart()
	}
}

func (c *cluster) anySpec() map[string]any {
	spec := map[string]any{"text": fmt.Sprint(c.random.IntN(2))}
	switch c.random.IntN(4) {
	case 0, 1:
		spec["selector"] = map[string]any{"matchLabels": map[string]any{"copy": "me"}}
	case 2:
		spec["selector"] = map[string]any{}
	}
	return spec
}

// changeInput creates, changes, renames or deletes an input, or creates it again.
func (c *cluster) changeInput() {
	ref := object.Ref{GVK: c.shape.inputs[c.random.IntN(2)].GVK, Namespace: "shop", Name: c.anyName()}
	if c.random.IntN(5) == 0 {
		ref.Namespace = "other"
	}
	present := c.objects[ref]
	switch c.random.IntN(5) {
	case 0:
		if present != nil {
			c.remove(ref)
		}
	case 1: // the same content under another name
		if present == nil {
			return
		}
		body, err := present.Map()
		if err != nil {
			c.t.Fatal(err)
		}
		c.remove(ref)
		metadata := body["metadata"].(map[string]any)
		metadata["name"] = c.anyName()
		delete(metadata, "uid")
		c.put(body)
	case 2: // restored from a backup
		if present != nil {
			c.remove(ref)
		}
		fallthrough
	default:
		c.put(map[string]any{
			"apiVersion": "v1", "kind": ref.GVK.Kind, "data": map[string]any{"n": fmt.Sprint(c.random.IntN(4))},
			"metadata": map[string]any{
				"namespace": ref.Namespace, "name": ref.Name,
				"labels": map[string]any{"copy": []string{"me", "you"}[c.random.IntN(2)]},
			},
		})
	}
}

func (c *cluster) anyName() string { return string(rune('a' + c.random.IntN(4))) }

// editOutput deletes an output, edits its content, or edits its marks in a way that leaves its map
// key readable.
func (c *cluster) editOutput() {
	all := slices.SortedFunc(maps.Values(c.owned()), func(a, b *object.Object) int {
		return strings.Compare(a.Name(), b.Name())
	})
	if len(all) == 0 {
		return
	}
	o := all[c.random.IntN(len(all))]
	if c.shown[o.Ref()] != o { // a watch shows the engine's own writes
		c.deliver()
	}
	key := o.Annotations()[plan.MapKey]
	intact := readTags(o).key == key && o.Labels()[plan.MapKey] == Hash(key) &&
		o.Annotations()[plan.MapController] != "" && o.LastApplied() != ""
	edit := c.random.IntN(6)
	if edit == 0 {
		c.remove(o.Ref())
		return
	}
	c.edit(o, func(body map[string]any) {
		metadata := body["metadata"].(map[string]any)
		annotations := metadata["annotations"].(map[string]any)
		switch {
		case edit == 1 || !intact:
			body["data"].(map[string]any)["text"] = "edited"
		case edit == 2: // the last-applied state has all
			delete(metadata, "labels")
			delete(annotations, plan.MapKey)
			delete(annotations, plan.MapController)
		case edit == 3:
			metadata["labels"] = map[string]any{plan.MapKey: []string{"mine", Hash("ConfigMap/shop/a")}[c.random.IntN(2)]}
		case edit == 4: // the label alone
			delete(annotations, object.LastAppliedAnnotation)
			annotations[plan.MapKey] = []string{"garbage", "ConfigMap/shop/a"}[c.random.IntN(2)]
		case edit == 5: // the annotation alone
			delete(annotations, object.LastAppliedAnnotation)
			delete(metadata, "labels")
		}
	})
}

// owned returns the objects that the parent owns.
func (c *cluster) owned() map[object.Ref]*object.Object {
	owned := map[object.Ref]*object.Object{}
	for ref, o := range c.objects {
		if owner := o.ControllerRef(); owner != nil && owner.UID == c.parent().UID() {
			owned[ref] = o
		}
	}
	return owned
}

// outputs returns the content of the objects that the parent owns.
func (c *cluster) outputs() map[string]string {
	contents := map[string]string{}
	for ref, o := range c.owned() {
		raw, _ := o.Field("data")
		contents[ref.Name] = string(raw)
	}
	return contents
}

// mapHook makes n outputs of an input with the number n.
func mapHook(parent, input *object.Object) []json.RawMessage {
	raw, _ := input.Field("data", "n")
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		panic(err)
	}
	spec, _ := parent.Field("spec", "text")
	var outputs []json.RawMessage
	for i := range int(text[0] - '0') {
		outputs = append(outputs, fmt.Appendf(nil,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s-%s-%d"},"data":{"from":%q,"text":%q}}`,
			strings.ToLower(input.GVK().Kind), input.Name(), i, KeyOf(input), spec))
	}
	return outputs
}

// kept is the rule of the tombstone hook.
func kept(o *object.Object) bool { return strings.HasSuffix(o.Name(), "-0") }

func (c *cluster) ask(q *hook.Question) *hook.Answer {
	if q.Op == hook.Map {
		return &hook.Answer{Children: mapHook(q.Parent, q.Input)}
	}
	a := &hook.Answer{}
	for _, o := range q.Children[0].Objects {
		if kept(o) {
			a.Children = append(a.Children, o.Raw())
		}
	}
	return a
}

// onePass returns the outputs after the pass of the design: it finds the matching objects, asks for
// each, gathers the outputs by the input that they were made from, and asks about those without.
func (c *cluster) onePass() map[string]string {
	parent := c.parent()
	selector := labels.Everything()
	if raw, ok := parent.Field("spec", "selector", "matchLabels"); ok {
		set := labels.Set{}
		if err := json.Unmarshal(raw, &set); err != nil {
			c.t.Fatal(err)
		}
		selector = labels.SelectorFromSet(set)
	}
	inputs := map[string]bool{}
	owned := c.owned()
	want := map[string]string{}
	for ref, o := range c.objects {
		isInput := (ref.GVK.Kind == "ConfigMap" || ref.GVK.Kind == "Secret") && ref.Namespace == "shop" &&
			owned[ref] == nil && selector.Matches(labels.Set(o.Labels()))
		if !isInput {
			continue
		}
		inputs[KeyOf(o).String()] = true
		for _, raw := range mapHook(parent, o) {
			output, err := object.Decode(raw)
			if err != nil {
				c.t.Fatal(err)
			}
			data, _ := output.Field("data")
			want[output.Name()] = string(data)
		}
	}
	for _, o := range owned {
		from, _ := o.Field("data", "from")
		var key string
		if err := json.Unmarshal(from, &key); err != nil {
			c.t.Fatal(err)
		}
		if data, _ := o.Field("data"); !inputs[key] && kept(o) {
			want[o.Name()] = string(data)
		}
	}
	return want
}

// restart drops everything that the engine holds, lists, and enqueues all parts.
func (c *cluster) restart() {
	c.queue, c.memory, c.waiting = map[string]bool{}, map[string]*partMemory{}, map[string]int{}
	c.index = newSelections(c.shape)
	c.shown = nil
	c.deliver()
	c.enqueueAll()
}

// deliver shows the view all changes, and enqueues the parts that they concern. Several changes of
// an object are one event, as after a watch was lost.
func (c *cluster) deliver() {
	before := c.shown
	c.shown = maps.Clone(c.objects)
	c.seen = c.version
	c.reader = viewtest.NewReader(slices.Collect(maps.Values(c.shown))...)
	changed := map[object.Ref]bool{}
	for _, objects := range []map[object.Ref]*object.Object{before, c.shown} {
		for ref := range objects {
			changed[ref] = before[ref] != c.shown[ref]
		}
	}
	owners := c.shape.owners()
	for ref := range changed {
		old := before[ref]
		current := c.shown[ref]
		if old == current {
			continue
		}
		if ref == c.parent().Ref() {
			c.index.track(old, current)
			c.enqueueAll()
			continue
		}
		var keys []hook.Key
		if ref.GVK == c.shape.outputKinds[0].Resource.GVK {
			keys = owners(old, current)
		}
		for _, key := range append(keys, c.index.inputs(old, current)...) {
			c.queue[key.Part] = true
		}
	}
}

func (c *cluster) enqueueAll() {
	parts, _, err := listParts(c.shape, c.reader, c.shown[c.parent().Ref()])
	if err != nil {
		c.t.Fatal(err)
	}
	for _, part := range parts {
		c.queue[part] = true
	}
}

// settle runs the engine until it has nothing to do.
func (c *cluster) settle(between func()) {
	for range 1000 {
		c.deliver()
		if len(c.queue) == 0 {
			return
		}
		c.syncAny()
		between()
	}
	c.t.Log(strings.Join(c.log[max(0, len(c.log)-5):], "\n"))
	c.t.Fatalf("the engine does not come to rest; in the queue are %v", slices.Sorted(maps.Keys(c.queue)))
}

// syncAny syncs one part of the queue. It may fail in the middle.
func (c *cluster) syncAny() {
	var ready []string
	for _, part := range slices.Sorted(maps.Keys(c.queue)) {
		if c.waiting[part] <= c.seen {
			ready = append(ready, part)
		}
	}
	if len(ready) == 0 {
		return
	}
	part := ready[c.random.IntN(len(ready))]
	delete(c.queue, part)
	budget := 1000
	if c.random.IntN(4) == 0 {
		budget = c.random.IntN(3)
	}
	if err := c.sync(part, &budget); err != nil {
		if !errors.Is(err, errConflict) {
			c.t.Fatalf("%s: %v", part, err)
		}
		c.queue[part] = true
		c.log = append(c.log, fmt.Sprintf("%s: %v", part, err))
	}
	c.waiting[part] = c.version
}

func (c *cluster) sync(part string, budget *int) error {
	o, questions, err := observe(c.shape, shape.Input{Reader: c.reader, Key: keyOf(c.parent(), part)})
	if err != nil || o == nil {
		delete(c.memory, part)
		return err
	}
	if len(o.Prepare) > 0 { // the next sync sees it
		err := c.do(o.Prepare, budget)
		c.queue[part] = true
		return err
	}
	if o.SkipChildren {
		return nil
	}
	var answers []*hook.Answer
	for _, q := range questions {
		answers = append(answers, c.ask(q))
	}
	if c.memory[part] == nil {
		c.memory[part] = &partMemory{}
	}
	m := c.memory[part]
	in := plan.Input{Observed: o, Converged: m.converged, Previous: &m.previous}
	desired, err := c.shape.Desired(in, answers)
	if err != nil {
		return err
	}
	result, err := plan.Make(in, desired)
	if err != nil {
		return err
	}
	m.converged = result.Converged
	return c.do(slices.Concat(result.First, result.Actions), budget)
}

// do carries out actions on the API server, which checks their preconditions.
func (c *cluster) do(actions []plan.Action, budget *int) error {
	for _, a := range actions {
		c.log = append(c.log, fmt.Sprint(a))
		*budget--
		if *budget < 0 {
			return errConflict
		}
		present := c.objects[a.Ref]
		if a.Verb == plan.Create {
			if present != nil {
				return fmt.Errorf("%s: %w", a, errConflict)
			}
			c.put(a.Body)
			continue
		}
		if present == nil || present.UID() != a.UID ||
			a.ResourceVersion != "" && present.ResourceVersion() != a.ResourceVersion {
			return fmt.Errorf("%s: %w", a, errConflict)
		}
		switch a.Verb {
		case plan.Delete:
			c.remove(a.Ref)
		case plan.Update:
			c.put(a.Body)
		case plan.Tag:
			c.edit(present, func(body map[string]any) {
				metadata := body["metadata"].(map[string]any)
				for field, patch := range map[string]map[string]*string{"labels": a.Labels, "annotations": a.Annotations} {
					for key, value := range patch {
						values, ok := metadata[field].(map[string]any)
						if !ok {
							values = map[string]any{}
							metadata[field] = values
						}
						values[key] = *value
					}
				}
			})
		default:
			return fmt.Errorf("unexpected %s", a)
		}
	}
	return nil
}
