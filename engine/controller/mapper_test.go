package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

var (
	configMaps = object.Resource{
		GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Plural: "configmaps", Namespaced: true,
	}
	secrets = object.Resource{
		GVK: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Plural: "secrets", Namespaced: true,
	}
)

// mapping is a mapper from Secrets to ConfigMaps, with the ConfigMaps in a view.
type mapping struct {
	t         testing.TB
	store     *view.Store
	followers []mapper.Func[Key]
	mapEvent  mapFunc
	bindErr   error
}

func (m *mapping) View(object.Resource) (view.View, error) { return m.store.View() }

// mapTo binds a mapper and follows the present ConfigMaps.
func mapTo(t testing.TB, by Mapper, present ...*corev1.ConfigMap) *mapping {
	t.Helper()
	m := &mapping{t: t, store: view.NewStore(configMaps)}
	m.store.Replace(nil, "1")
	m.mapEvent, m.bindErr = by.bind(&binding{
		primary: configMaps, watched: secrets, reader: &access{controller: "c", scheme: scheme.Scheme, views: m},
		index: func(i AnyIndex) error {
			m.store.AddIndex(i.raw())
			return checkIndex(i, func(Type) error { return nil })
		},
		follow: func(f mapper.Func[Key]) { m.followers = append(m.followers, f) },
	})
	for _, c := range present {
		m.put(nil, c)
	}
	return m
}

// put makes an event of a ConfigMap; now is nil for its deletion.
func (m *mapping) put(before, now *corev1.ConfigMap) {
	m.t.Helper()
	old := raw(m.t, before)
	current := raw(m.t, now)
	if current != nil {
		m.store.Put(current)
	} else {
		m.store.Delete(old)
	}
	for _, f := range m.followers {
		f(old, current)
	}
}

// keys maps an event of a Secret.
func (m *mapping) keys(before, now *corev1.Secret) []string {
	m.t.Helper()
	keys, err := mapSafely(m.t.Context(), m.mapEvent, cache.Event{
		Resource: secrets, Old: raw(m.t, before), New: raw(m.t, now),
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return shown(keys)
}

func shown(keys []Key) []string {
	out := []string{}
	for _, k := range keys {
		out = append(out, k.String())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// raw returns an object as the cache has it; nil for nil.
func raw(t testing.TB, o any) *object.Object {
	t.Helper()
	kind := ""
	switch o := o.(type) {
	case *corev1.Secret:
		if o == nil {
			return nil
		}
		kind = "Secret"
	case *corev1.ConfigMap:
		if o == nil {
			return nil
		}
		kind = "ConfigMap"
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "{", fmt.Sprintf(`{"apiVersion":"v1","kind":%q,`, kind), 1))
	decoded, err := object.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}

// meta is the metadata of an object; more are labels as key=value, and owner=UID.
func meta(name string, more ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{}}
	for _, text := range more {
		key, value, _ := strings.Cut(text, "=")
		if key != "owner" {
			m.Labels[key] = value
			continue
		}
		controls := true
		m.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: value, UID: types.UID("uid-" + value), Controller: &controls,
		}}
	}
	return m
}

func aSecret(name string, more ...string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: meta(name, more...)}
}

func pointing(name, to string) *corev1.Secret {
	s := aSecret(name)
	s.StringData = map[string]string{"to": to}
	return s
}

func config(name string, data map[string]string, more ...string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: meta(name, more...), Data: data}
}

func to(name string) map[string]string { return map[string]string{"to": name} }

// selectionIn returns the selection of a label in namespace ns.
func selectionIn(data map[string]string) Selection {
	if data["app"] == "" {
		return Selection{}
	}
	return Selection{Namespace: "ns", Selector: labels.SelectorFromSet(labels.Set{"app": data["app"]})}
}

// TestMappers maps events of Secrets to ConfigMaps. Every mapper looks at both states.
func TestMappers(t *testing.T) {
	byName := IndexByName("secret", func(c *corev1.ConfigMap) string { return c.Data["to"] })
	byRef := NewIndex("reference", func(c *corev1.ConfigMap) []Reference {
		return []Reference{{Kind: c.Data["kind"], Namespace: "ns", Name: c.Data["to"]}}
	})
	byColour := IndexBy("colour", func(c *corev1.ConfigMap) (string, bool) {
		return c.Data["colour"], c.Data["colour"] != ""
	})
	colour := func(s *corev1.Secret) []string { return []string{s.Labels["colour"]} }
	target := func(s *corev1.Secret) []Key { return []Key{{Namespace: "ns", Name: s.StringData["to"]}} }
	selects := Selects(func(c *corev1.ConfigMap) Selection { return selectionIn(c.Data) })
	selected := SelectedBy(func(s *corev1.Secret) Selection { return selectionIn(s.StringData) })
	selecting := func(name, app string) *corev1.Secret {
		s := aSecret(name)
		s.StringData = map[string]string{"app": app}
		return s
	}
	app := func(name string) map[string]string { return map[string]string{"app": name} }
	for name, test := range map[string]struct {
		by          Mapper
		present     []*corev1.ConfigMap
		before, now *corev1.Secret
		want        []string
	}{
		"the same name":   {SameName(), nil, nil, aSecret("a"), []string{"ns/a"}},
		"an owner":        {OwnerOf(), nil, aSecret("s", "owner=a"), aSecret("s", "owner=b"), []string{"ns/a", "ns/b"}},
		"an owner before": {OwnerOf(), nil, aSecret("s", "owner=a"), nil, []string{"ns/a"}},
		"owned objects": {
			OwnedBy(), []*corev1.ConfigMap{config("a", nil, "owner=s"), config("b", nil, "owner=other")},
			nil, aSecret("s"), []string{"ns/a"},
		},
		"owned by one that is deleted": {
			OwnedBy(), []*corev1.ConfigMap{config("a", nil, "owner=s")}, aSecret("s"), nil, []string{"ns/a"},
		},
		"selected by ConfigMaps": {
			selects, []*corev1.ConfigMap{config("a", app("x")), config("b", app("y")), config("c", nil)},
			nil, aSecret("s", "app=x"), []string{"ns/a"},
		},
		"selected before": {
			selects, []*corev1.ConfigMap{config("a", app("x")), config("b", app("y"))},
			aSecret("s", "app=x"), aSecret("s", "app=y"), []string{"ns/a", "ns/b"},
		},
		"a Secret that selects": {
			selected, []*corev1.ConfigMap{config("a", nil, "app=x"), config("b", nil, "app=y", "owner=o")},
			selecting("s", "x"), selecting("s", "y"), []string{"ns/a", "ns/b"},
		},
		"a Secret that selects nothing": {
			selected, []*corev1.ConfigMap{config("a", nil, "app=x")}, nil, aSecret("s"), []string{},
		},
		"a reference by name": {
			RefersTo(byName), []*corev1.ConfigMap{config("a", to("s")), config("b", to("other")), config("c", nil)},
			nil, aSecret("s"), []string{"ns/a"},
		},
		"a composite reference": {
			RefersTo(byRef), []*corev1.ConfigMap{
				config("a", map[string]string{"kind": "Secret", "to": "s"}),
				config("b", map[string]string{"kind": "Node", "to": "s"}),
			}, aSecret("s"), nil, []string{"ns/a"},
		},
		"a pointer that moves": {
			ReferredBy(target), nil, pointing("s", "a"), pointing("s", "b"), []string{"ns/a", "ns/b"},
		},
		"an index": {
			ByIndex(byColour, colour), []*corev1.ConfigMap{
				config("a", map[string]string{"colour": "red"}), config("b", map[string]string{"colour": "blue"}),
				config("c", map[string]string{"colour": "green"}),
			}, aSecret("s", "colour=red"), aSecret("s", "colour=blue"), []string{"ns/a", "ns/b"},
		},
		"several mappers": {
			Multi(SameName(), RefersTo(byName)), []*corev1.ConfigMap{config("a", to("s"))},
			nil, aSecret("s"), []string{"ns/a", "ns/s"},
		},
		"an own function": {
			Map(func(_ context.Context, _ Reader, before, now *corev1.Secret) ([]Key, error) {
				return append(target(before), target(now)...), nil
			}), nil, pointing("s", "a"), pointing("s", "b"), []string{"ns/a", "ns/b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := mapTo(t, test.by, test.present...)
			if m.bindErr != nil {
				t.Fatal(m.bindErr)
			}
			if diff := cmp.Diff(test.want, m.keys(test.before, test.now)); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSelectsFollows: the index of selectors follows the objects, and one with an unknown selector
// selects everything.
func TestSelectsFollows(t *testing.T) {
	m := mapTo(t, Selects(func(c *corev1.ConfigMap) Selection {
		if c.Data["app"] == "broken" {
			panic("no luck")
		}
		return selectionIn(c.Data)
	}))
	x := aSecret("s", "app=x")
	states := []*corev1.ConfigMap{nil}
	for _, app := range []string{"y", "x", "broken", ""} {
		states = append(states, config("a", map[string]string{"app": app}))
	}
	states = append(states, config("a", map[string]string{"app": "x"}), nil)
	for i, want := range []int{0, 1, 1, 0, 1, 0} {
		m.put(states[i], states[i+1])
		if got := m.keys(nil, x); len(got) != want {
			t.Errorf("after event %d the Secret maps to %v, want %d keys", i, got, want)
		}
	}
}

// TestMapperFailsInParts: what a mapper knows is not lost with what it does not know.
func TestMapperFailsInParts(t *testing.T) {
	broken, err := object.Decode([]byte(
		`{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"ns","name":"s"},"stringData":7}`))
	if err != nil {
		t.Fatal(err)
	}
	fails := errors.New("no luck")
	target := func(s *corev1.Secret) []Key { return []Key{{Namespace: "ns", Name: s.StringData["to"]}} }
	for name, test := range map[string]struct {
		by  Mapper
		old *object.Object
	}{
		"a state that does not fit": {ReferredBy(target), broken},
		"an own function": {Map(func(_ context.Context, _ Reader, _, now *corev1.Secret) ([]Key, error) {
			return target(now), nil
		}), broken},
		"one of several": {Multi(Map(func(context.Context, Reader, *corev1.Secret, *corev1.Secret) ([]Key, error) {
			return nil, fails
		}), ReferredBy(target)), nil},
		"one of several panics": {Multi(Map(func(context.Context, Reader, *corev1.Secret, *corev1.Secret) ([]Key, error) {
			panic(fails)
		}), ReferredBy(target)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := mapTo(t, test.by)
			keys, err := mapSafely(t.Context(), m.mapEvent, cache.Event{Old: test.old, New: raw(t, pointing("s", "a"))})
			if diff := cmp.Diff([]string{"ns/a"}, shown(keys)); diff != "" || err == nil {
				t.Errorf("error %v, keys (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestUnindexable: a lookup in an index with an object of unknown values fails, and names it.
func TestUnindexable(t *testing.T) {
	byName := IndexByName("secret", func(c *corev1.ConfigMap) string {
		if c.Data["to"] == "broken" {
			panic("no luck")
		}
		return c.Data["to"]
	})
	m := mapTo(t, RefersTo(byName), config("a", to("s")), config("bad", to("broken")))
	_, err := m.mapEvent(t.Context(), cache.Event{New: raw(t, aSecret("s"))})
	if want := `index "secret": its function panics for ConfigMap.v1 "ns/bad"`; err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
	m.put(config("bad", to("broken")), config("bad", to("s")))
	if diff := cmp.Diff([]string{"ns/a", "ns/bad"}, m.keys(nil, aSecret("s"))); diff != "" {
		t.Errorf("keys when the object is repaired (-want +got):\n%s", diff)
	}
}

// TestMapperFaults are declarations of mappers that do not fit.
func TestMapperFaults(t *testing.T) {
	ofSecrets := IndexByName("wrong", func(s *corev1.Secret) string { return s.Name })
	byPointer := NewIndex("pointer", func(*corev1.ConfigMap) []*string { return nil })
	none := func(*corev1.Node) []Key { return nil }
	for name, test := range map[string]struct {
		by   Mapper
		want string
	}{
		"an index of another type": {
			RefersTo(ofSecrets),
			"the mapper's index wrong is of *v1.Secret, expected the controller's type ConfigMap.v1",
		},
		"another watched type": {
			ReferredBy(none), "the mapper takes *v1.Node, expected the type of the watched Secret.v1",
		},
		"another type of controller": {
			Selects(func(*corev1.Node) Selection { return Selection{} }),
			"the mapper takes *v1.Node, expected the type of the controller's ConfigMap.v1",
		},
		"pointers as values": {
			ByIndex(byPointer, func(*corev1.Secret) []*string { return nil }),
			`index "pointer": values of type *string, expected text, numbers, booleans, or structs and arrays of them`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := mapTo(t, test.by).bindErr; err == nil || err.Error() != test.want {
				t.Errorf("error is %v\nwant %s", err, test.want)
			}
		})
	}
}

// TestText: different values have different texts.
func TestText(t *testing.T) {
	type name string
	texts := map[string]any{}
	for _, v := range []any{
		Key{Namespace: "a", Name: "bc"}, Key{Namespace: "ab", Name: "c"}, Key{Name: "abc"},
		Reference{Kind: "a", Name: "b"}, Reference{Kind: "a", Namespace: "b"},
		1, 12, true, "", "a", unindexable, [2]string{"a b", "c"}, [2]string{"a", "b c"},
	} {
		if other, taken := texts[text(v)]; taken {
			t.Errorf("%#v and %#v have the text %q", v, other, text(v))
		}
		texts[text(v)] = v
	}
	if text(name("a")) != text("a") {
		t.Errorf("the text of a named string is %q", text(name("a")))
	}
}

// BenchmarkMappers is the cost of an event that maps to one of many objects; it does not grow with
// their number.
func BenchmarkMappers(b *testing.B) {
	byName := IndexByName("secret", func(c *corev1.ConfigMap) string { return c.Data["to"] })
	for name, by := range map[string]Mapper{
		"RefersTo": RefersTo(byName),
		"Selects":  Selects(func(c *corev1.ConfigMap) Selection { return selectionIn(c.Data) }),
		"SelectedBy": SelectedBy(func(s *corev1.Secret) Selection {
			return Selection{Namespace: "ns", Selector: labels.SelectorFromSet(labels.Set{"app": s.Labels["app"]})}
		}),
		"OwnedBy": OwnedBy(),
	} {
		for _, objects := range []int{1_000, 20_000} {
			b.Run(fmt.Sprint(name, "/", objects), func(b *testing.B) {
				m := mapTo(b, by)
				for i := range objects {
					n := fmt.Sprint(i)
					m.put(nil, config(n, map[string]string{"to": n, "app": n}, "app="+n, "owner="+n))
				}
				e := cache.Event{Old: raw(b, aSecret("7", "app=7")), New: raw(b, aSecret("7", "app=7"))}
				b.ReportAllocs()
				for b.Loop() {
					if keys, err := m.mapEvent(b.Context(), e); err != nil || len(keys) == 0 {
						b.Fatal(keys, err)
					}
				}
			})
		}
	}
}
