package related

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	configMaps = object.Resource{
		GVK:        schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Plural:     "configmaps",
		Namespaced: true,
	}
	nodes = object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, Plural: "nodes"}
)

const some, none = `{"matchLabels":{"a":"b"}}`, ``

// TestCheck has a row for each form of rule: about a resource, from a parent in a namespace or
// (cluster) in none.
func TestCheck(t *testing.T) {
	own, all, cluster := Scope{true, "shop"}, Scope{false, "shop"}, Scope{true, ""}
	tests := []struct {
		name     string
		declared Declared
		resource object.Resource
		scope    Scope
		want     string // the error; or the namespace that the rule is about
	}{
		{"everything, v1", Declared{}, configMaps, own, "shop"},
		{"everything, v2", Declared{}, configMaps, all, ""},
		{"everything, of a cluster-scoped parent", Declared{}, configMaps, cluster, ""},
		{"labels", Declared{LabelSelector: json.RawMessage(some)}, configMaps, own, "shop"},
		{
			"null is no selector",
			Declared{LabelSelector: json.RawMessage(`null`), Names: []string{"a"}},
			configMaps,
			own,
			"shop",
		},
		{"names", Declared{Names: []string{"a"}}, configMaps, own, "shop"},
		{"namespace and names, v2", Declared{Namespace: "else", Names: []string{"a"}}, configMaps, all, "else"},
		{
			"namespace and labels, v2",
			Declared{Namespace: "else", LabelSelector: json.RawMessage(some)},
			configMaps,
			all,
			"else",
		},
		{
			"namespace selector, v2",
			Declared{NamespaceSelector: json.RawMessage(some), LabelSelector: json.RawMessage(some)},
			configMaps,
			all,
			"",
		},
		{"the parent's own namespace, v1", Declared{Namespace: "shop"}, configMaps, own, "shop"},
		{"any namespace of a cluster-scoped parent, v1", Declared{Namespace: "else"}, configMaps, cluster, "else"},
		{"cluster-scoped, v1: none will match", Declared{}, nodes, own, "shop"},
		{"cluster-scoped, v2", Declared{}, nodes, all, ""},

		{
			"names and labels",
			Declared{Names: []string{"a"}, LabelSelector: json.RawMessage(some)},
			configMaps,
			all,
			"names and labelSelector are both set",
		},
		{
			"names and a namespace selector",
			Declared{Names: []string{"a"}, NamespaceSelector: json.RawMessage(some)},
			configMaps,
			all,
			"names and namespaceSelector are both set",
		},
		{
			"namespace and a namespace selector",
			Declared{Namespace: "a", NamespaceSelector: json.RawMessage(some)},
			configMaps,
			all,
			"namespace and namespaceSelector are both set",
		},
		{
			"another namespace, v1",
			Declared{Namespace: "else"},
			configMaps,
			own,
			`namespace is "else"; expected "shop", the parent's`,
		},
		{"a namespace selector, v1", Declared{NamespaceSelector: json.RawMessage(some)}, configMaps, own, "needs version v2"},
		{
			"a namespace selector of nodes",
			Declared{NamespaceSelector: json.RawMessage(some)},
			nodes,
			all,
			"nodes.v1 is cluster-scoped",
		},
		{"a namespace of nodes", Declared{Namespace: "shop"}, nodes, all, "nodes.v1 is cluster-scoped"},
		{"an empty name", Declared{Names: []string{"a", ""}}, configMaps, all, "names has an empty name"},
		{"a selector that is none", Declared{LabelSelector: json.RawMessage(`[]`)}, configMaps, all, "labelSelector: "},
		{
			"a selector that is not valid",
			Declared{NamespaceSelector: json.RawMessage(`{"matchExpressions":[{"key":"a","operator":"Near"}]}`)},
			configMaps,
			all,
			"namespaceSelector: ",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rule, err := test.declared.Check(test.resource, test.scope)
			switch {
			case err != nil && (test.want == "" || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error %v, want %q", err, test.want)
			case err == nil && rule.Namespace != test.want:
				t.Errorf("about namespace %q, want %q", rule.Namespace, test.want)
			}
		})
	}
}
