package mapping

import (
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestMapKey(t *testing.T) {
	for text, want := range map[string]MapKey{
		"ConfigMap/shop/prices":             {Kind: "ConfigMap", Namespace: "shop", Name: "prices"},
		"Deployment.apps/shop/web":          {Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"},
		"Web.example.com/shop/a.b":          {Group: "example.com", Kind: "Web", Namespace: "shop", Name: "a.b"},
		"Namespace/shop":                    {Kind: "Namespace", Name: "shop"},
		"Web-Site.example.com/shop/a":       {Group: "example.com", Kind: "Web-Site", Namespace: "shop", Name: "a"},
		"ClusterRole.rbac.k8s.io/system:me": {Group: "rbac.k8s.io", Kind: "ClusterRole", Name: "system:me"},
	} {
		got, err := ParseMapKey(text)
		if err != nil || got != want {
			t.Errorf("ParseMapKey(%q) = %+v, %v; want %+v", text, got, err, want)
		}
		if want.String() != text {
			t.Errorf("%+v is %q, want %q", want, want.String(), text)
		}
	}
}

func TestBadMapKeys(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "expected KIND.GROUP/NAMESPACE/NAME",
		"ConfigMap":             "expected KIND.GROUP/NAMESPACE/NAME",
		"a/b/c/d":               "expected KIND.GROUP/NAMESPACE/NAME",
		"/shop/prices":          `kind ""`,
		"Config Map/shop/a":     `kind "Config Map"`,
		"-ConfigMap/shop/a":     `kind "-ConfigMap"`,
		"ConfigMap./shop/a":     `group ""`,
		"Web.Example/shop/a":    `group "Example"`,
		"ConfigMap/shop/":       `name ""`,
		"ConfigMap//a":          `namespace ""`,
		"ConfigMap/Shop/a":      `namespace "Shop"`,
		"ConfigMap/shop/..":     `name ".."`,
		"ConfigMap/sh.op/a":     `namespace "sh.op"`,
		"ConfigMap/shop/50%off": `name "50%off"`,
	} {
		if got, err := ParseMapKey(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseMapKey(%q) = %+v, %v; want an error with %s", text, got, err, want)
		}
	}
}

// TestKeyOf: UID, version of the API and resourceVersion are not part of the key.
func TestKeyOf(t *testing.T) {
	for _, text := range []string{
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web","uid":"1"}}`,
		`{"apiVersion":"apps/v1beta1","kind":"Deployment","metadata":{"namespace":"shop","name":"web","uid":"2"}}`,
	} {
		o, err := object.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := KeyOf(o).String(); got != "Deployment.apps/shop/web" {
			t.Errorf("the key of %s is %q", text, got)
		}
	}
}

// TestHash pins the hash: outputs in clusters carry it.
func TestHash(t *testing.T) {
	const want = "d0a63c7158d633950ec0d9732832d10e"
	if got := Hash("ConfigMap/shop/prices"); got != want {
		t.Errorf("Hash = %q, want %q", got, want)
	}
	for text, is := range map[string]bool{
		want: true, "": false, want[1:]: false, strings.ToUpper(want): false, want[1:] + "g": false,
	} {
		if isHash(text) != is {
			t.Errorf("isHash(%q) = %t", text, !is)
		}
	}
}

func FuzzMapKey(f *testing.F) {
	for _, seed := range []string{
		"ConfigMap/shop/prices", "Deployment.apps/shop/web", "Namespace/shop", "", "/", "a//b", "A.b.c/d/e:f",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := ParseMapKey(text)
		if err != nil {
			if key != (MapKey{}) {
				t.Errorf("ParseMapKey(%q) = %+v with the error %v", text, key, err)
			}
			return
		}
		if key.String() != text {
			t.Errorf("%q is parsed as %+v, which is %q", text, key, key)
		}
		if faults := validation.IsValidLabelValue(Hash(text)); len(faults) > 0 || !isHash(Hash(text)) {
			t.Errorf("the hash of %q is no value of a label: %v", text, faults)
		}
	})
}
