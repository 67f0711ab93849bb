package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/test/kit"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// parent returns an object of kind Web in YAML. The mirror answers the given children for it.
func parent(name string, children ...string) string {
	return "apiVersion: $GROUP/v1\nkind: Web\nmetadata: {name: " + name + ", namespace: $NS}\n" +
		"spec: {answer: {children: [" + strings.Join(children, ", ") + "]}}"
}

// page returns a ConfigMap in YAML, with some data.
func page(name, data string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}, data: {" + data + "}}"
}

// run starts a controller of Webs with ConfigMaps as children, and the mirror as its hook.
func run(t *testing.T, k *kit.Kit, c kit.Composite) {
	t.Helper()
	k.CRD("Web", "Namespaced")
	c.Parent = "webs"
	if c.Sync == "" {
		c.Sync = mirror(t)
	}
	if c.Children == nil {
		c.Children = []string{"v1/configmaps InPlace"}
	}
	k.Run(c)
}

// field returns a field of an object by its dotted path; "" if one of them does not exist.
func field(k *kit.Kit, kind, name, path string) string {
	k.Helper()
	o := k.Find(kind, name)
	if o == nil {
		return ""
	}
	value, found, err := unstructured.NestedFieldNoCopy(o.Object, strings.Split(path, ".")...)
	if err != nil || !found {
		return ""
	}
	return fmt.Sprint(value)
}

// await waits until a field of an object has a value; "" if it must not exist.
func await(k *kit.Kit, kind, name, path, want string) {
	k.Helper()
	k.Eventually(fmt.Sprintf("%s of %s %s is %q", path, kind, name, want), func() error {
		if got := field(k, kind, name, path); got != want {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

// awaitSync waits until the parent has been synced again: it gets a new status.
func awaitSync(k *kit.Kit, name string) {
	k.Helper()
	round := k.Get("Web", name).GetResourceVersion()
	k.Patch("Web", name, "spec: {answer: {status: {round: '"+round+"'}}}")
	await(k, "Web", name, "status.round", round)
}

// awaitLines waits until lines of the audit log are the expected ones: a client sees an object a
// moment before the log has its write.
func awaitLines(k *kit.Kit, what string, want []string, lines func() []string) {
	k.Helper()
	k.Eventually(what, func() error {
		if diff := cmp.Diff(want, lines()); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}

func TestChildren(t *testing.T) {
	parallel(t)
	one := parent("web", page("page", "text: one"))
	two := parent("web", page("page", "text: two"))
	cases := map[string]struct {
		method string
		// before is the converged parent before the change.
		before string
		change func(*kit.Kit)
		// text is the page's text after the change, and writes are all writes to children because of it.
		text   string
		writes []string
	}{
		"a child that the answer adds is created": {
			method: "InPlace", before: parent("web"),
			change: func(k *kit.Kit) { k.Apply(one) },
			text:   "one", writes: []string{"create configmaps page"},
		},
		"InPlace changes a child": {
			method: "InPlace", before: one,
			change: func(k *kit.Kit) { k.Apply(two) },
			text:   "two", writes: []string{"update configmaps page"},
		},
		"Recreate deletes a child and creates it anew": {
			method: "Recreate", before: one,
			change: func(k *kit.Kit) { k.Apply(two) },
			text:   "two", writes: []string{"delete configmaps page", "create configmaps page"},
		},
		"OnDelete leaves a child as it is": {
			method: "OnDelete", before: one,
			change: func(k *kit.Kit) { k.Apply(two) },
			text:   "one", writes: []string{},
		},
		"without a method a child is left as it is": {
			before: one,
			change: func(k *kit.Kit) { k.Apply(two) },
			text:   "one", writes: []string{},
		},
		"OnDelete makes the new child once the old one is deleted": {
			method: "OnDelete", before: one,
			change: func(k *kit.Kit) {
				k.Apply(two)
				awaitSync(k, "web")
				k.Delete("v1/ConfigMap", "page")
			},
			text: "two", writes: []string{"create configmaps page"},
		},
		"a child that the answer drops is deleted": {
			method: "InPlace", before: one,
			change: func(k *kit.Kit) { k.Apply(parent("web")) },
			text:   "", writes: []string{"delete configmaps page"},
		},
		"a child that a user deletes comes back": {
			method: "InPlace", before: one,
			change: func(k *kit.Kit) { k.Delete("v1/ConfigMap", "page") },
			text:   "one", writes: []string{"create configmaps page"},
		},
		"a desired field that a user changes is restored": {
			method: "InPlace", before: one,
			change: func(k *kit.Kit) {
				k.Patch("v1/ConfigMap", "page", "data: {text: mine}")
				await(k, "v1/ConfigMap", "page", "data.text", "one")
			},
			text: "one", writes: []string{"update configmaps page"},
		},
		"a field that a user adds stays": {
			method: "InPlace", before: one,
			change: func(k *kit.Kit) { k.Patch("v1/ConfigMap", "page", "data: {more: mine}") },
			text:   "one", writes: []string{},
		},
		"a field that the server drops is sent once": {
			method: "InPlace", before: parent("web"),
			change: func(k *kit.Kit) {
				k.Apply(
					parent("web", "{apiVersion: v1, kind: ConfigMap, metadata: {name: page}, data: {text: one}, bogus: {a: 1}}"))
				await(k, "v1/ConfigMap", "page", "data.text", "one")
				awaitSync(k, "web")
			},
			text: "one", writes: []string{"create configmaps page"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			k := start(t)
			run(t, k, kit.Composite{Children: []string{strings.TrimSpace("v1/configmaps " + c.method)}})
			k.Apply(c.before)
			awaitSync(k, "web")
			mark := k.Mark()
			c.change(k)
			await(k, "v1/ConfigMap", "page", "data.text", c.text)
			awaitSync(k, "web")
			if diff := cmp.Diff(c.writes, k.ChildWrites(mark)); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if got := field(k, "v1/ConfigMap", "page", "data.text"); got != c.text {
				t.Errorf("the page's text is %q, want %q", got, c.text)
			}
		})
	}
}

// TestLargeNumbersSurvive passes a number that no float64 can hold (2^53+1) from the parent through
// the hook into a child.
func TestLargeNumbersSurvive(t *testing.T) {
	k := start(t)
	k.CRD("Thing", "Namespaced")
	run(t, k, kit.Composite{Children: []string{"$GROUP/v1/things InPlace"}})
	k.Apply(parent("web", "{apiVersion: $GROUP/v1, kind: Thing, metadata: {name: one}, spec: {big: 9007199254740993}}"))
	await(k, "Thing", "one", "spec.big", "9007199254740993")
	awaitSync(k, "web")
	mark := k.Mark()
	awaitSync(k, "web")
	if n := kit.Count(k.Writes(mark), "update", "things"); n != 0 {
		t.Errorf("%d updates of the child, want none", n)
	}
}
