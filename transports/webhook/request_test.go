package webhook

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var update = flag.Bool("update", false, "rewrite the golden files; look at what changed before you commit it")

// The golden files show the JSON of both versions. A parent in namespace shop has one child there
// and one in namespace other; related are a cluster-scoped object and one in another namespace.
// Then the same with a cluster-scoped parent.
func TestRequests(t *testing.T) {
	clusterScoped := observed(t)
	clusterScoped.Parent = decodeObject(t, "example.com/v1", "Planet", "", "earth")
	decorator := observed(t)
	decorator.Kind = hook.Decorator
	named := observed(t)
	configs := named.Related[1]
	first := configs
	second := configs
	none := configs
	first.Name = "first"
	first.Objects = configs.Objects[:1]
	second.Name = "second"
	none.Name = "none"
	none.Objects = nil
	named.Related = []hook.RelatedGroup{first, second, none}
	finalize := observed(t)
	finalize.Op = hook.Finalize
	finalize.Related = nil
	cases := map[string]struct {
		q       *hook.Question
		version string
	}{
		"composite-v1":         {observed(t), "v1"},
		"composite-v2":         {observed(t), "v2"},
		"composite-v1-cluster": {clusterScoped, "v1"},
		"composite-finalize":   {finalize, "v2"},
		"composite-named":      {named, "v2"},
		"decorator-v2":         {decorator, "v2"},
		"map-v1":               {mapped(t, hook.Map), "v1"},
		"map-v2":               {mapped(t, hook.Map), "v2"},
		"map-tombstone":        {mapped(t, hook.Tombstone), "v1"},
		"map-finalize":         {mapped(t, hook.Finalize), "v2"},
		"map-customize":        {mapped(t, hook.Customize), "v1"},
		"decorator-customize": {&hook.Question{
			Kind: hook.Decorator, Op: hook.Customize, Controller: decorator.Controller, Parent: decorator.Parent,
		}, "v2"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := json.Indent(&got, encode(c.q, c.version).bytes(), "", "  "); err != nil {
				t.Fatal(err)
			}
			got.WriteByte('\n')
			golden := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", golden, diff)
			}
		})
	}
}

// TestNamesAreEscaped writes names with characters that JSON escapes.
func TestNamesAreEscaped(t *testing.T) {
	const name = `a"b\c` + "ä\n"
	q := mapped(t, hook.Map)
	q.MapKey = "ClusterRole.rbac.authorization.k8s.io/" + name
	q.Children[0].Objects = []*object.Object{decodeObject(t, "v1", "Pod", "shop", name)}
	var got struct {
		MapKey  string
		Outputs map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(encode(q, "v1").bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.MapKey != q.MapKey || got.Outputs["Pod.v1"][name] == nil {
		t.Errorf("got map key %q and outputs %v, want name %q", got.MapKey, got.Outputs, name)
	}
}

func TestUnknownRelatedObjectsAreNotAskedWith(t *testing.T) {
	for name, group := range map[string]hook.RelatedGroup{
		"not served":     {NotFound: true},
		"cannot be read": {Err: fmt.Errorf("forbidden")},
	} {
		t.Run(name, func(t *testing.T) {
			q := observed(t)
			q.Related = append(q.Related, group)
			if err := (&client{name: "sync test"}).checkRelated(q); hook.ErrorKindOf(err) == "" {
				t.Errorf("got %v, want an error: in JSON the group would look empty", err)
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	q := observed(b)
	for range 100 {
		q.Children[0].Objects = append(q.Children[0].Objects, q.Children[0].Objects[0])
	}
	b.ReportAllocs()
	for b.Loop() {
		b.SetBytes(int64(encode(q, "v2").size()))
	}
}

// observed returns a sync question about a composite controller's parent in namespace shop.
func observed(t testing.TB) *hook.Question {
	t.Helper()
	return &hook.Question{
		Kind: hook.Composite, Op: hook.Sync,
		Controller: decodeObject(t, "metacontroller.k8s.io/v1alpha1", "CompositeController", "", "hello"),
		Parent:     decodeObject(t, "example.com/v1", "HelloWorld", "shop", "hi"),
		Children: []hook.Group{
			{Resource: resource("", "Pod", true), Objects: []*object.Object{
				decodeObject(t, "v1", "Pod", "other", "far"), decodeObject(t, "v1", "Pod", "shop", "near"),
			}},
			{Resource: resource("apps", "Deployment", true)},
		},
		Related: []hook.RelatedGroup{
			{
				Group: hook.Group{
					Resource: resource("", "Namespace", false),
					Objects:  []*object.Object{decodeObject(t, "v1", "Namespace", "", "shop")},
				},
			},
			{Group: hook.Group{Resource: resource("", "ConfigMap", true), Objects: []*object.Object{
				decodeObject(t, "v1", "ConfigMap", "other", "far"), decodeObject(t, "v1", "ConfigMap", "shop", "near"),
			}}},
		},
	}
}

// mapped returns a question about one input of the parent.
func mapped(t testing.TB, op hook.Op) *hook.Question {
	t.Helper()
	q := observed(t)
	q.Kind = hook.Mapping
	q.Op = op
	q.MapKey = "Secret/shop/in"
	q.Controller = decodeObject(t, "metacontroller.k8s.io/v1alpha1", "MapController", "", "hello")
	if op == hook.Map {
		q.Input = decodeObject(t, "v1", "Secret", "shop", "in")
	}
	if op == hook.Tombstone {
		q.Related = nil
	}
	return q
}

func resource(group, kind string, namespaced bool) object.Resource {
	return object.Resource{
		GVK:        schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind},
		Plural:     strings.ToLower(kind) + "s",
		Namespaced: namespaced,
	}
}

func decodeObject(t testing.TB, apiVersion, kind, namespace, name string) *object.Object {
	t.Helper()
	metadata := fmt.Sprintf(`{"name":%q}`, name)
	if namespace != "" {
		metadata = fmt.Sprintf(`{"namespace":%q,"name":%q}`, namespace, name)
	}
	o, err := object.Decode(fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":%s}`, apiVersion, kind, metadata))
	if err != nil {
		t.Fatal(err)
	}
	return o
}
