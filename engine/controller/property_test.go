package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/internal/host"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/object"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var propertyRuns = flag.Int("property-runs", 200, "number of random clusters of TestBoundReferencesSuffice")

// The property: in random clusters, a controller that is brought back by its bound references ends
// with the same objects as one that reconciles every key after every event.
//
// The controller computes a ConfigMap for each name to which Secrets refer by data.for. A Secret is
// followed to others by data.next, to Nodes by name (data.node) and by labels (data.zone), and to
// the Secrets that a Node owns (data.owner). Reconciles fail and panic in between, the process is
// restarted, pointers move, and ConfigMaps are deleted and overwritten by others.

// source is a Secret as the cluster has it.
type source struct {
	For, Next, Node, Zone, Owner string
}

func (s source) data() map[string][]byte {
	all := map[string][]byte{}
	for key, value := range map[string]string{
		"for": s.For, "next": s.Next, "node": s.Node, "zone": s.Zone, "owner": s.Owner,
	} {
		if value != "" {
			all[key] = []byte(value)
		}
	}
	return all
}

// reading is how the computation reads: from the controller's Reader, or from the model.
type reading interface {
	secretsFor(name string) ([]secret, error)
	secret(name string) (secret, error) // nil if it does not exist
	node(name string) (*corev1.Node, error)
	nodesIn(zone string) ([]*corev1.Node, error)
	ownedBy(node *corev1.Node) ([]secret, error)
}

// compute returns the computed text of a name; empty if nothing refers to it.
func compute(r reading, name string) (string, error) {
	all, err := r.secretsFor(name)
	if err != nil {
		return "", err
	}
	var out []string
	for _, s := range all {
		text, err := describe(r, s, 3)
		if err != nil {
			return "", err
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return strings.Join(out, ";"), nil
}

// describe follows the references of one Secret.
func describe(r reading, s secret, depth int) (string, error) {
	out := s.Name
	if next := string(s.Data["next"]); next != "" && depth > 0 {
		found, err := r.secret(next)
		if err != nil {
			return "", err
		}
		text := "?"
		if found != nil {
			text, err = describe(r, found, depth-1)
			if err != nil {
				return "", err
			}
		}
		out += ">" + text
	}
	if name := string(s.Data["node"]); name != "" {
		node, err := r.node(name)
		if err != nil {
			return "", err
		}
		if node == nil {
			out += "@?"
		} else {
			out += "@" + node.Name + "=" + node.Labels["zone"]
		}
	}
	names, err := many(r, s)
	return out + names, err
}

// many returns the names that a Secret's lists find.
func many(r reading, s secret) (string, error) {
	var names []string
	if zone := string(s.Data["zone"]); zone != "" {
		nodes, err := r.nodesIn(zone)
		if err != nil {
			return "", err
		}
		for _, n := range nodes {
			names = append(names, n.Name)
		}
	}
	if name := string(s.Data["owner"]); name != "" {
		node, err := r.node(name)
		if err != nil || node == nil {
			return "", err
		}
		owned, err := r.ownedBy(node)
		if err != nil {
			return "", err
		}
		for _, o := range owned {
			names = append(names, o.Name)
		}
	}
	slices.Sort(names)
	return fmt.Sprint(names), nil
}

// fromCache reads with the controller's functions. fail fails at random.
type fromCache struct {
	r    controller.Reader
	fail func() error
}

var secretsFor = controller.NewIndex("for", func(s secret) []string { return []string{string(s.Data["for"])} })

func (c fromCache) secretsFor(name string) ([]secret, error) {
	if err := c.fail(); err != nil {
		return nil, err
	}
	return controller.By(c.r, secretsFor, name)
}

func (c fromCache) secret(name string) (secret, error) {
	if err := c.fail(); err != nil {
		return nil, err
	}
	s, err := controller.Get[secret](c.r, controller.Key{Namespace: "shop", Name: name})
	if controller.IsNotFound(err) {
		return nil, nil
	}
	return s, err
}

func (c fromCache) node(name string) (*corev1.Node, error) {
	n, err := controller.Get[*corev1.Node](c.r, controller.Key{Name: name})
	if controller.IsNotFound(err) {
		return nil, nil
	}
	return n, err
}

func (c fromCache) nodesIn(zone string) ([]*corev1.Node, error) {
	if err := c.fail(); err != nil {
		return nil, err
	}
	return controller.List[*corev1.Node](c.r, controller.MatchingLabels(map[string]string{"zone": zone}))
}

func (c fromCache) ownedBy(n *corev1.Node) ([]secret, error) { return controller.Owned[secret](c.r, n) }

// model is the cluster as its edits made it. It is also the reading of the expected end.
type model struct {
	secrets map[string]secret
	nodes   map[string]*corev1.Node
}

func (m *model) secretsFor(name string) ([]secret, error) {
	var all []secret
	for _, s := range m.secrets {
		if string(s.Data["for"]) == name {
			all = append(all, s)
		}
	}
	return all, nil
}

func (m *model) secret(name string) (secret, error)     { return m.secrets[name], nil }
func (m *model) node(name string) (*corev1.Node, error) { return m.nodes[name], nil }
func (m *model) nodesIn(zone string) ([]*corev1.Node, error) {
	var all []*corev1.Node
	for _, n := range m.nodes {
		if n.Labels["zone"] == zone {
			all = append(all, n)
		}
	}
	return all, nil
}

func (m *model) ownedBy(n *corev1.Node) ([]secret, error) {
	var all []secret
	for _, s := range m.secrets {
		if ref := metav1.GetControllerOf(s); ref != nil && ref.UID == n.UID {
			all = append(all, s)
		}
	}
	return all, nil
}

// randomFixture is one run with a random cluster.
type randomFixture struct {
	*fixture
	model
	random *rand.Rand
	names  []string
	// broken are the names of Secrets that do not fit their type.
	broken map[string]bool
	stop   func()

	mu sync.Mutex // guards the fields below
	// computed are the ConfigMaps that the server has.
	computed map[string]string
	failures int
	luck     *rand.Rand
}

func (w *randomFixture) fail() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failures == 0 || w.luck.IntN(12) > 0 {
		return nil
	}
	w.failures--
	if w.luck.IntN(2) == 0 {
		panic("bad luck")
	}
	return errors.New("bad luck")
}

// write makes a ConfigMap have a text; empty deletes it.
func (w *randomFixture) write(name, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, exists := w.computed[name]
	switch {
	case text == "" && exists:
		delete(w.computed, name)
		w.server.Delete(configMaps, "shop", name)
	case text != "":
		w.computed[name] = text
		w.server.Put(configMaps, body(configMaps, name, fmt.Sprintf(`,"data":{"text":%q}`, text)))
	}
}

// declare returns the controller; with full it reconciles every key after every event, without
// bound references.
func (w *randomFixture) declare(full bool) controller.Declared {
	reads := func(r controller.Reader) controller.Reader { return r }
	onSecret := controller.ReferredBy(func(s secret) []controller.Key {
		if len(s.Data["for"]) == 0 {
			return nil
		}
		return []controller.Key{{Namespace: "shop", Name: string(s.Data["for"])}}
	})
	c := controller.New[configMap]("computed").Index(secretsFor)
	if full {
		reads = controller.Untracked
		c.Watch(controller.TypeOf[secret](), everyKey[secret](w.names)).
			Watch(controller.TypeOf[*corev1.Node](), everyKey[*corev1.Node](w.names))
	} else {
		c.Watch(controller.TypeOf[secret](), onSecret).Watch(controller.TypeOf[*corev1.Node]())
	}
	return c.Reconciler(reconciler(
		func(_ context.Context, req *controller.Request[configMap]) (controller.Result, error) {
			text, err := compute(fromCache{reads(req), w.fail}, req.Key.Name)
			if err != nil {
				return controller.Result{}, err
			}
			present := ""
			if req.Object != nil {
				present = req.Object.Data["text"]
			}
			if text != present {
				w.write(req.Key.Name, text)
			}
			return controller.Result{}, nil
		}))
}

func everyKey[U controller.Object](names []string) controller.Mapper {
	return controller.Map(func(context.Context, controller.Reader, U, U) ([]controller.Key, error) {
		var keys []controller.Key
		for _, name := range names {
			keys = append(keys, controller.Key{Namespace: "shop", Name: name})
		}
		return keys, nil
	})
}

// start starts a process with its own cache.
func (w *randomFixture) start(full bool) {
	w.t.Helper()
	objects, err := cache.New(cache.Config{Config: w.server.Config()})
	if err != nil {
		w.t.Fatal(err)
	}
	h := *w.host
	h.Cache = objects
	group, err := host.NewGroup(&h, w.declare(full))
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		group.Run(ctx)
	}()
	w.stop = func() {
		cancel()
		<-done
		objects.Close()
	}
}

// edit makes one random change.
func (w *randomFixture) edit() {
	name := w.names[w.random.IntN(len(w.names))]
	switch w.random.IntN(10) {
	case 0:
		if w.secrets[name] != nil || w.broken[name] {
			delete(w.secrets, name)
			delete(w.broken, name)
			w.server.Delete(secrets, "shop", name)
		}
	case 1:
		if w.nodes[name] != nil {
			delete(w.nodes, name)
			w.server.Delete(nodes, "", name)
		}
	case 2, 3:
		w.putNode(name)
	case 4:
		w.write(name, []string{"", "overwritten"}[w.random.IntN(2)])
	case 5:
		if w.random.IntN(3) == 0 {
			delete(w.secrets, name)
			w.broken[name] = true
			w.server.Put(secrets, body(secrets, name, `,"data":7`))
		}
	default:
		w.putSecret(name)
	}
}

func (w *randomFixture) some(names []string) string {
	if w.random.IntN(2) == 0 {
		return ""
	}
	return names[w.random.IntN(len(names))]
}

var zones = []string{"east", "west"}

func (w *randomFixture) putNode(name string) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"zone": zones[w.random.IntN(2)]},
	}}
	w.nodes[name] = n
	w.put(nodes, n)
}

func (w *randomFixture) putSecret(name string) {
	s := source{
		For: w.some(w.names), Next: w.some(w.names), Node: w.some(w.names), Zone: w.some(zones), Owner: w.some(w.names),
	}
	o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "uid"}, Data: s.data()}
	if owner := w.nodes[w.some(w.names)]; owner != nil {
		o.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("Node")),
		}
	}
	delete(w.broken, name)
	w.secrets[name] = o
	w.put(secrets, o)
}

func (w *randomFixture) put(r object.Resource, o any) {
	raw, err := json.Marshal(o)
	if err != nil {
		w.t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		w.t.Fatal(err)
	}
	m["apiVersion"], m["kind"] = r.GVK.ToAPIVersionAndKind()
	raw, err = json.Marshal(m)
	if err != nil {
		w.t.Fatal(err)
	}
	w.server.Put(r, string(raw))
}

// settleTimeout bounds the wait for the end of a run.
const settleTimeout = 30 * time.Second

// settle waits until the computed objects are those that the model demands.
func (w *randomFixture) settle(when string) {
	w.t.Helper()
	want := map[string]string{}
	for _, name := range w.names {
		if text, _ := compute(&w.model, name); text != "" {
			want[name] = text
		}
	}
	deadline := time.Now().Add(settleTimeout)
	for {
		w.mu.Lock()
		got := maps.Clone(w.computed)
		w.mu.Unlock()
		diff := cmp.Diff(want, got)
		if diff == "" {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s, computed objects (-want +got):\n%s", when, diff)
		}
		time.Sleep(time.Millisecond)
	}
}

// runRandomFixture runs a controller on a random cluster to the end, and fails unless the computed
// objects become the model's. Before that they may be right for a moment: a reconcile that was under
// way can write an older state, and the next one corrects it.
func runRandomFixture(t *testing.T, seed uint64, full bool) {
	t.Helper()
	w := &randomFixture{
		fixture: newFixture(t), model: model{secrets: map[string]secret{}, nodes: map[string]*corev1.Node{}},
		random: rand.New(rand.NewPCG(seed, 1)), luck: rand.New(rand.NewPCG(seed, 2)), failures: 8,
		names: []string{"a", "b", "c", "d"}, broken: map[string]bool{}, computed: map[string]string{},
	}
	w.start(full)
	defer func() { w.stop() }()
	for step := range 30 {
		w.edit()
		switch choice := w.random.IntN(12); {
		case choice == 0:
			w.stop()
			w.edit()
			w.start(full)
		case choice < 4 && len(w.broken) == 0:
			w.settle(fmt.Sprint("after edit ", step))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.broken)) {
		w.putSecret(name)
	}
	w.settle("at the end")
}

// TestBoundReferencesSuffice checks the property above.
func TestBoundReferencesSuffice(t *testing.T) {
	for seed := range uint64(*propertyRuns) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			runRandomFixture(t, seed, false)
			if seed%10 == 0 { // now and then: the full controller agrees with the model, too
				runRandomFixture(t, seed, true)
			}
		})
	}
}
