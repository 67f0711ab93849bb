package integration

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/test/kit"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type (
	bar = *corev1.ConfigMap
	foo = *corev1.Secret
)

// journal records the keys that controllers reconcile. It is safe for concurrent use.
type journal struct {
	mu   sync.Mutex
	keys map[string]map[string]bool
}

// reset forgets all keys.
func (j *journal) reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.keys = map[string]map[string]bool{}
}

// of returns the sorted names of the keys of a controller.
func (j *journal) of(name string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Sorted(maps.Keys(j.keys[name]))
}

// controller declares a controller of the kit's ConfigMaps with a role. It only records its keys.
func (j *journal) controller(k *kit.Kit, name string) *controller.Controller[bar] {
	return controller.New[bar](name + "-" + k.Name).Where(func(o bar) bool {
		return o.Namespace == k.Namespace && o.Labels["role"] == "bar"
	}).Reconciler(controller.ReconcileFunc[bar](
		func(_ context.Context, req *controller.Request[bar]) (controller.Result, error) {
			if req.Key.Namespace != k.Namespace { // of another test, by a mapper
				return controller.Result{}, nil
			}
			j.mu.Lock()
			defer j.mu.Unlock()
			if j.keys[name] == nil {
				j.keys[name] = map[string]bool{}
			}
			j.keys[name][req.Key.Name] = true
			return controller.Result{}, nil
		}))
}

const mappedManifest = `
apiVersion: v1
kind: ConfigMap
metadata: {name: same, namespace: $NS, labels: {role: bar}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: pointer, namespace: $NS, labels: {role: bar}}
data: {secret: same}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: selecting, namespace: $NS, labels: {role: bar}}
data: {app: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: chosen, namespace: $NS, labels: {role: bar, color: red}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: indexed, namespace: $NS, labels: {role: bar}}
data: {zone: north}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: owner, namespace: $NS, labels: {role: bar}}
---
apiVersion: v1
kind: Secret
metadata: {name: same, namespace: $NS, labels: {app: shop, zone: north}, annotations: {color: red}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other, namespace: $NS, labels: {role: bar}}`

// mappers are the ways from a Secret to ConfigMaps.
func mappers() map[string]controller.Mapper {
	byName := controller.IndexByName("secret", func(o bar) string { return o.Data["secret"] })
	byReference := controller.IndexBy("reference", func(o bar) (controller.Reference, bool) {
		key := controller.Key{Namespace: o.Namespace, Name: o.Data["secret"]}
		return controller.RefTo(schema.GroupKind{Kind: "Secret"}, key), key.Name != ""
	})
	byZone := controller.NewIndex("zone", func(o bar) []string { return []string{o.Data["zone"]} })
	return map[string]controller.Mapper{
		"pointer": controller.RefersTo(byName), "composite": controller.RefersTo(byReference),
		"same": controller.SameName(), "owner": controller.OwnerOf(), "owned": controller.OwnedBy(),
		"multi": controller.Multi(controller.SameName(), controller.RefersTo(byName)),
		"indexed": controller.ByIndex(byZone, func(o foo) []string {
			return []string{o.Labels["zone"]}
		}),
		"selecting": controller.Selects(func(o bar) controller.Selection {
			if o.Data["app"] == "" {
				return controller.Selection{}
			}
			selector := labels.SelectorFromSet(labels.Set{"app": o.Data["app"]})
			return controller.Selection{Namespace: o.Namespace, Selector: selector}
		}),
		"chosen": controller.SelectedBy(func(o foo) controller.Selection {
			selector := labels.SelectorFromSet(labels.Set{"color": o.Annotations["color"]})
			return controller.Selection{Namespace: o.Namespace, Selector: selector}
		}),
		"naive": controller.Map(func(_ context.Context, r controller.Reader, _, now foo) ([]controller.Key, error) {
			if now == nil {
				return nil, nil
			}
			all, err := controller.List[bar](r, controller.InNamespace(now.Namespace))
			var keys []controller.Key
			for _, o := range all {
				if o.Data["secret"] == now.Name {
					keys = append(keys, controller.KeyOf(o))
				}
			}
			return keys, err
		}),
	}
}

// TestControllerMappers changes a Secret: the mappers of ten controllers find the ConfigMaps that
// are related to it in their way, and no other.
func TestControllerMappers(t *testing.T) {
	parallel(t)
	k := kit.New(t)
	k.Apply(mappedManifest)
	own := func(kind, name, ownerKind, owner string) {
		const patch = "metadata: {ownerReferences: [{apiVersion: v1, kind: %s, name: %s, uid: %s, controller: true}]}"
		k.Patch(kind, name, fmt.Sprintf(patch, ownerKind, owner, k.Get("v1/"+ownerKind, owner).GetUID()))
	}
	own("v1/Secret", "same", "ConfigMap", "owner")
	k.Object("v1/ConfigMap", "owned").Label("role", "bar").Apply()
	own("v1/ConfigMap", "owned", "Secret", "same")

	j := &journal{}
	j.reset()
	var declared []controller.Declared
	for name, m := range mappers() {
		declared = append(declared, j.controller(k, name).Watch(controller.TypeOf[foo](), m))
	}
	runActors(k, declared...)
	all := []string{"chosen", "indexed", "other", "owned", "owner", "pointer", "same", "selecting"}
	for name := range mappers() {
		k.Eventually(name+" has reconciled all", func() error { return wantNames(j.of(name), all) })
	}
	change := func() {
		j.reset()
		k.Patch("v1/Secret", "same", "stringData: {text: "+strconv.FormatInt(time.Now().UnixNano(), 36)+"}")
	}
	change()
	for name := range mappers() {
		k.Eventually(name+" reconciles", func() error {
			want := related(name)
			got := j.of(name)
			if len(got) > len(want) { // by its mapper, or because it has started again: then not after the next change
				change()
			}
			return wantNames(got, want)
		})
	}
}

// related are the names of the ConfigMaps that a mapper finds.
func related(mapper string) []string {
	switch mapper {
	case "composite", "naive":
		return []string{"pointer"}
	case "multi":
		return []string{"pointer", "same"}
	}
	return []string{mapper}
}

func wantNames(got, want []string) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}

// computed returns controllers of the ConfigMaps with a role: each has the values of the Secrets
// that name it. The first one declares only what it watches. The second one keeps its references in
// its object, and declares an index of them: each step that the first one does not need.
func computed(k *kit.Kit) []controller.Declared {
	namedBy := func(o foo) (controller.Key, bool) {
		return controller.Key{Namespace: o.Namespace, Name: o.Annotations["computed"]}, o.Annotations["computed"] != ""
	}
	index := func() *controller.Index[foo, controller.Key] { return controller.IndexBy("computed", namedBy) }
	where := func(role string) func(bar) bool {
		return func(o bar) bool { return o.Namespace == k.Namespace && o.Labels["role"] == role }
	}
	reconcile := func(
		by *controller.Index[foo, controller.Key], prefix string,
		read func(*controller.Request[bar]) controller.Reader, also func(*controller.Request[bar], bar),
	) controller.ReconcileFunc[bar] {
		return func(ctx context.Context, req *controller.Request[bar]) (controller.Result, error) {
			if req.Object == nil {
				return controller.Result{}, nil
			}
			name := strings.TrimPrefix(req.Key.Name, prefix)
			found, err := controller.By(read(req), by, controller.Key{Namespace: k.Namespace, Name: name})
			if err != nil {
				return controller.Result{}, err
			}
			var values []string
			for _, o := range found {
				values = append(values, o.Name)
			}
			o := req.Object.DeepCopy()
			o.Data = map[string]string{"values": strings.Join(values, " ")}
			also(req, o)
			if maps.Equal(o.Data, req.Object.Data) {
				return controller.Result{}, nil
			}
			return controller.Result{}, req.Update(ctx, o)
		}
	}
	automatic := index()
	explicit := index()
	references := func(o bar) []controller.Reference {
		var all []controller.Reference
		for name := range strings.FieldsSeq(o.Data["references"]) {
			key := controller.Key{Namespace: o.Namespace, Name: name}
			all = append(all, controller.RefTo(schema.GroupKind{Kind: "Secret"}, key))
		}
		return all
	}
	return []controller.Declared{
		controller.New[bar]("computed-" + k.Name).Where(where("computed")).
			Watch(controller.TypeOf[foo]()).Index(automatic).
			Reconciler(reconcile(automatic, "",
				func(req *controller.Request[bar]) controller.Reader { return req },
				func(*controller.Request[bar], bar) {})),
		controller.New[bar]("explicit-"+k.Name).Where(where("explicit")).
			Watch(controller.TypeOf[foo](), controller.ReferredBy(func(o foo) []controller.Key {
				key, has := namedBy(o)
				if !has {
					return nil
				}
				return []controller.Key{{Namespace: key.Namespace, Name: "explicit-" + key.Name}}
			})).
			Index(explicit).BoundIn(references).
			Reconciler(reconcile(explicit, "explicit-",
				func(req *controller.Request[bar]) controller.Reader { return req },
				func(req *controller.Request[bar], o bar) {
					var names []string
					for _, r := range req.References() {
						names = append(names, r.Name)
					}
					o.Data["references"] = strings.Join(names, " ")
				})),
	}
}

// TestBoundReferences moves pointers: the objects that they leave are reconciled, also if a pointer
// moves while no controller runs, and directly after the restart.
func TestBoundReferences(t *testing.T) {
	parallel(t)
	k := kit.New(t)
	for _, name := range []string{"left", "right"} {
		k.Apply(strings.NewReplacer("NAME", name).Replace(`
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: $NS, labels: {role: computed}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: explicit-NAME, namespace: $NS, labels: {role: explicit}}`))
	}
	point := func(name, to string) {
		k.Patch("v1/Secret", name, "metadata: {annotations: {computed: "+to+"}}")
	}
	want := func(left, right string) {
		k.Helper()
		for _, prefix := range []string{"", "explicit-"} {
			await(k, "v1/ConfigMap", prefix+"left", "data.values", left)
			await(k, "v1/ConfigMap", prefix+"right", "data.values", right)
		}
	}
	running := runActors(k, computed(k)...)
	for _, name := range []string{"a", "b"} {
		k.Object("v1/Secret", name).Annotation("computed", "left").Apply()
	}
	want("a b", "")
	await(k, "v1/ConfigMap", "explicit-left", "data.references", "a b")
	point("b", "right")
	want("a", "b")
	running.stop()
	point("a", "right")
	running = runActors(k, computed(k)...)
	want("", "a b")
	running.stop()
	runActors(k, computed(k)...)
	point("a", "left")
	want("a", "b")
	k.NoWrites(func() { k.Settled(settled) })
}

// TestControllerSources reconciles keys of a channel, of a ticker and of HTTP requests, after the
// initializer.
func TestControllerSources(t *testing.T) {
	parallel(t)
	k := kit.New(t)
	channel := make(chan controller.Key, 1)
	webhook := controller.NewWebhook(controller.WebhookOptions{Authorize: controller.BearerToken("t")})
	j := &journal{}
	j.reset()
	initialized := make(chan int, 10)
	key := func(name string) controller.Key { return controller.Key{Namespace: k.Namespace, Name: name} }
	runActors(k, j.controller(k, "sources").Source(controller.Channel(channel)).Source(webhook).
		Source(controller.Ticker(50*time.Millisecond, func(context.Context, controller.Reader) ([]controller.Key, error) {
			return []controller.Key{key("ticker")}, nil
		})).
		Initialize(func(context.Context, *controller.Runtime) error {
			initialized <- len(j.of("sources"))
			return nil
		}))
	if got := <-initialized; got != 0 || len(initialized) > 0 {
		t.Errorf("%d keys are reconciled before the initializer, which runs %d more times", got, len(initialized))
	}
	channel <- key("channel")
	k.Eventually("a request is accepted", func() error {
		body := strings.NewReader(k.Expand(`{"keys": [{"namespace": "$NS", "name": "webhook"}]}`))
		request := httptest.NewRequestWithContext(k.Context(), http.MethodPost, "/", body)
		request.Header.Set("Authorization", "Bearer t")
		recorder := httptest.NewRecorder()
		webhook.ServeHTTP(recorder, request)
		if recorder.Code != http.StatusAccepted {
			return fmt.Errorf("status %d: %s", recorder.Code, recorder.Body)
		}
		return nil
	})
	k.Eventually("the keys", func() error {
		return wantNames(j.of("sources"), []string{"channel", "ticker", "webhook"})
	})
}

// TestControllerStatus writes both outcomes of a condition, keeps one condition of each type, and
// writes nothing while nothing changes.
func TestControllerStatus(t *testing.T) {
	parallel(t)
	k := kit.New(t)
	k.CRD("Site", "Namespaced")
	site := schema.GroupVersionKind{Group: k.Group, Version: "v1", Kind: "Site"}
	declared := controller.NewFor("sites-"+k.Name, site).Resync(100 * time.Millisecond).Reconciler(
		controller.ReconcileFunc[*unstructured.Unstructured](func(
			ctx context.Context, req *controller.Request[*unstructured.Unstructured],
		) (controller.Result, error) {
			if req.Object == nil {
				return controller.Result{}, nil
			}
			ready := controller.False("Ready", "NoText", "spec.text is empty")
			if text, _, err := unstructured.NestedString(req.Object.Object, "spec", "text"); err == nil && text != "" {
				ready = controller.True("Ready", "Served", "the text is served")
			}
			var fault error
			err := controller.SetStatus(ctx, req.Runtime, req.Object, func(o *unstructured.Unstructured) {
				fault = controller.SetConditionsOf(o, ready)
			})
			if fault != nil {
				return controller.Result{}, fault
			}
			return controller.Result{}, err
		}))
	k.Object("Site", "home").Set("spec.text", "").Apply()
	twice := `{type: Ready, status: "%s", reason: Old, message: "", lastTransitionTime: "2020-01-0%dT00:00:00Z"}`
	k.Patch("Site", "home", "status: {other: kept, conditions: ["+fmt.Sprintf(twice, "True", 1)+", "+
		fmt.Sprintf(twice, "False", 2)+"]}", "status")
	runActors(k, declared)
	want := func(status, reason string, generation int64) {
		k.Helper()
		k.Eventually("condition Ready is "+status, func() error {
			o := k.Get("Site", "home")
			all, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
			c := kit.Condition(o, "Ready")
			if err != nil || len(all) != 1 || c["status"] != status || c["reason"] != reason ||
				c["observedGeneration"] != generation {
				return fmt.Errorf("conditions are %v, %w", all, err)
			}
			return nil
		})
	}
	want("False", "NoText", 1)
	transition := kit.Condition(k.Get("Site", "home"), "Ready")["lastTransitionTime"]
	if transition != "2020-01-02T00:00:00Z" {
		t.Errorf("lastTransitionTime = %v although the status has not changed", transition)
	}
	k.Patch("Site", "home", "spec: {text: hello}")
	want("True", "Served", 2)
	k.NoWrites(func() { k.Settled(settled) })
	k.Patch("Site", "home", "spec: {text: ''}")
	want("False", "NoText", 3)
	if got := field(k, "Site", "home", "status.other"); got != "kept" {
		t.Errorf("status.other = %q, want that of the other writer", got)
	}
}

// TestControllerReadsItsWrites lists what it has created, within the reconcile.
func TestControllerReadsItsWrites(t *testing.T) {
	parallel(t)
	k := kit.New(t)
	byOwner := controller.NewIndex("of", func(o foo) []string { return []string{o.Labels["of"]} })
	counted := make(chan string, 100)
	runActors(k, controller.New[bar]("counts-"+k.Name).
		Where(func(o bar) bool { return o.Namespace == k.Namespace && o.Labels["role"] == "bar" }).
		Watch(controller.TypeOf[foo]()).Index(byOwner).
		Reconciler(controller.ReconcileFunc[bar](
			func(ctx context.Context, req *controller.Request[bar]) (controller.Result, error) {
				before, err := controller.By(req, byOwner, req.Key.Name)
				if err != nil || req.Object == nil || len(before) > 0 {
					return controller.Result{}, err
				}
				for i := range 3 {
					o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
						Namespace: k.Namespace, Name: fmt.Sprint(req.Key.Name, "-", i), Labels: map[string]string{"of": req.Key.Name},
					}}
					if err := req.Own(req.Object, o); err != nil {
						return controller.Result{}, err
					}
					if err := req.Create(ctx, o); err != nil {
						return controller.Result{}, err
					}
				}
				by, err := controller.By(req, byOwner, req.Key.Name)
				if err != nil {
					return controller.Result{}, err
				}
				list, err := controller.List[foo](req, controller.MatchingLabels(map[string]string{"of": req.Key.Name}))
				if err != nil {
					return controller.Result{}, err
				}
				owned, err := controller.Owned[foo](req, req.Object)
				counted <- fmt.Sprintf("%s: %d %d %d", req.Key.Name, len(by), len(list), len(owned))
				return controller.Result{}, err
			})))
	for i := range 5 {
		k.Apply(fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: n%d, namespace: $NS, labels: {role: bar}}", i))
	}
	for range 5 {
		if got := <-counted; !strings.HasSuffix(got, ": 3 3 3") {
			t.Errorf("a reconcile reads %q after its writes, want 3 by each read", got)
		}
	}
}
