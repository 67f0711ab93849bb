package actor

import (
	"slices"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/internal/host"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var group = schema.GroupVersion{Group: "example.com", Version: "v1"}

func testScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(group.WithKind("Log"), &logs{})
	s.AddKnownTypeWithName(group.WithKind("Store"), &store{})
	s.AddKnownTypeWithName(group.WithKind("Fragile"), &fragile{})
	return s
}

// TestFaultsOfDeclarations are found without an API server.
func TestFaultsOfDeclarations(t *testing.T) {
	log := New("log", idle[*logs]{})
	for name, c := range map[string]struct {
		declared []host.Declarer
		want     string
	}{
		"a wrong name":  {all(New("Log Service", idle[*logs]{})), `actor "Log Service": the name must be`},
		"no actor":      {all(New[*logs]("log", nil)), `actor "log": the Actor is nil`},
		"no action":     {all(New("log", idle[*logs]{}).Actions(0)), `Actions: got 0, expected at least 1`},
		"no conditions": {all(New("bare", idle[*bare]{})), `*actor.bare has no field Status.Conditions`},
		"an unregistered type": {
			all(New("log", idle[*logs]{}).Owns(TypeOf[*bare]())), `type *actor.bare: is not registered`,
		},
		"an unregistered need": {
			all(New("log", idle[*logs]{}).DependsOn(TypeOf[*bare]())), `type *actor.bare: is not registered`,
		},
		"a circle of two types": {
			all(New("log", idle[*logs]{}).DependsOn(TypeOf[*store]()), New("store", idle[*store]{})),
			`actor "store": dependencies of types form a circle: *actor.store → *actor.logs → *actor.store`,
		},
		"a name twice":       {all(log, New("log", idle[*store]{})), `controller "log": two controllers have this name`},
		"a chain":            {all(log, New("store", idle[*store]{})), ""},
		"a type with itself": {all(New("log", idle[*logs]{}).DependsOn(TypeOf[*logs]())), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := host.NewGroup(&host.Host{Scheme: testScheme()}, c.declared...)
			switch {
			case err == nil && c.want != "":
				t.Errorf("no error, want %q", c.want)
			case err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error = %v, want %q", err, c.want)
			}
		})
	}
}

func all(declared ...host.Declarer) []host.Declarer { return declared }

// TestKinds has the kinds of dependencies optional, and those of children required.
func TestKinds(t *testing.T) {
	d := New("store", idle[*store]{})
	for name, c := range map[string]struct {
		declaration        *Declaration[*store]
		required, optional []string
	}{
		"a dependency":             {d, []string{"Store"}, []string{"Log"}},
		"a dependency and a child": {New("store", idle[*store]{}).Owns(TypeOf[*logs]()), []string{"Store", "Log"}, nil},
		"a declared type": {
			New("store", idle[*store]{}).DependsOn(TypeOf[*fragile]()),
			[]string{"Store"}, []string{"Fragile", "Log"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			required, err := c.declaration.Declared().Kinds(testScheme())
			if err != nil {
				t.Fatal(err)
			}
			optional, err := declared[*store]{c.declaration}.OptionalKinds(testScheme())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(kindNames(required), c.required) || !slices.Equal(kindNames(optional), c.optional) {
				t.Errorf("kinds = %v and %v, want %v and %v", required, optional, c.required, c.optional)
			}
		})
	}
}

func kindNames(kinds []schema.GroupVersionKind) []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Kind)
	}
	return names
}

// TestZeroDependencies panics for the zero value: the types must be declared.
func TestZeroDependencies(t *testing.T) {
	if got := New("fragile", idle[*fragile]{}).needs(); len(got) != 0 {
		t.Errorf("needs = %v, want none", got)
	}
	if got := New("fragile", idle[*fragile]{}).DependsOn(TypeOf[*logs]()).needs(); len(got) != 1 {
		t.Errorf("needs = %v, want the declared one", got)
	}
}

// TestIndexValues finds a dependent object by what it depends on.
func TestIndexValues(t *testing.T) {
	id := TypeOf[*logs]().id
	for name, c := range map[string]struct {
		dependency Dependency
		want       []string
	}{
		"another namespace": {Require(named(&logs{}, "base", "a")), []string{id + " base/a"}},
		"no namespace":      {Require(named(&logs{}, "", "a")), []string{id + " /a", id + " shop/a"}},
		"not set":           {Require[*logs](nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := indexValues("shop", []Dependency{c.dependency}); !slices.Equal(got, c.want) {
				t.Errorf("values = %q, want %q", got, c.want)
			}
		})
	}
}

// TestReferences keeps nothing but the name, and fills a reference with the found object.
func TestReferences(t *testing.T) {
	full := named(&logs{}, "shop", "a")
	full.Status.Endpoint = "a:1"
	full.Spec = "s"
	s := &store{Logs: full}
	stripDependencies(s)
	if s.Logs.Status.Endpoint != "" || s.Logs.Spec != "" || s.Logs.Name != "a" || s.Logs.Namespace != "shop" {
		t.Errorf("the reference is %+v, want the name only", s.Logs)
	}
	found := named(&logs{}, "shop", "a")
	found.Status.Endpoint = "a:2"
	s.Dependencies()[0].fill(found)
	if s.Logs.Status.Endpoint != "a:2" {
		t.Errorf("the reference is %+v, want the found object", s.Logs)
	}
	if Optional[*logs](nil).ignored() != true || Require[*logs](nil).ignored() {
		t.Error("only an optional dependency that is not set is ignored")
	}
}

func TestMergeChanges(t *testing.T) {
	status := map[string]any{"unknown": "kept", "size": int64(1), "gone": "x", "same": "server's"}
	mergeChanges(status, map[string]any{"size": int64(1), "gone": "x", "same": "s"},
		map[string]any{"size": int64(2), "added": true, "same": "s"})
	want := map[string]any{"unknown": "kept", "size": int64(2), "added": true, "same": "server's"}
	if len(status) != len(want) {
		t.Errorf("status = %v, want %v", status, want)
	}
	for name, value := range want {
		if status[name] != value {
			t.Errorf("status.%s = %v, want %v", name, status[name], value)
		}
	}
}

func TestChangedFields(t *testing.T) {
	before := named(&logs{}, "shop", "a")
	after := named(&logs{}, "shop", "a")
	after.Labels = map[string]string{"a": "b"}
	if fields, spec := changedFields(before, after); fields != "metadata.labels" || spec {
		t.Errorf("changedFields = %q, %v", fields, spec)
	}
	after.Spec = "s"
	if fields, spec := changedFields(before, after); fields != "metadata.labels, spec" || !spec {
		t.Errorf("changedFields = %q, %v", fields, spec)
	}
}
