package customize

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
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
	own := ruleScope{true, "shop"}
	all := ruleScope{false, "shop"}
	cluster := ruleScope{true, ""}
	tests := []struct {
		name     string
		declared hook.RelatedRule
		resource object.Resource
		scope    ruleScope
		want     string // the error; or the namespace that the rule is about
	}{
		{"everything, v1", hook.RelatedRule{}, configMaps, own, "shop"},
		{"everything, v2", hook.RelatedRule{}, configMaps, all, ""},
		{"everything, of a cluster-scoped parent", hook.RelatedRule{}, configMaps, cluster, ""},
		{"labels", hook.RelatedRule{LabelSelector: json.RawMessage(some)}, configMaps, own, "shop"},
		{
			"null is no selector",
			hook.RelatedRule{LabelSelector: json.RawMessage(`null`), Names: []string{"a"}},
			configMaps,
			own,
			"shop",
		},
		{"names", hook.RelatedRule{Names: []string{"a"}}, configMaps, own, "shop"},
		{"namespace and names, v2", hook.RelatedRule{Namespace: "else", Names: []string{"a"}}, configMaps, all, "else"},
		{
			"namespace and labels, v2",
			hook.RelatedRule{Namespace: "else", LabelSelector: json.RawMessage(some)},
			configMaps,
			all,
			"else",
		},
		{
			"namespace selector, v2",
			hook.RelatedRule{NamespaceSelector: json.RawMessage(some), LabelSelector: json.RawMessage(some)},
			configMaps,
			all,
			"",
		},
		{"the parent's own namespace, v1", hook.RelatedRule{Namespace: "shop"}, configMaps, own, "shop"},
		{"any namespace of a cluster-scoped parent, v1", hook.RelatedRule{Namespace: "else"}, configMaps, cluster, "else"},
		{"cluster-scoped, v1: none will match", hook.RelatedRule{}, nodes, own, "shop"},
		{"cluster-scoped, v2", hook.RelatedRule{}, nodes, all, ""},

		{
			"names and labels",
			hook.RelatedRule{Names: []string{"a"}, LabelSelector: json.RawMessage(some)},
			configMaps,
			all,
			"names and labelSelector are both set",
		},
		{
			"names and a namespace selector",
			hook.RelatedRule{Names: []string{"a"}, NamespaceSelector: json.RawMessage(some)},
			configMaps,
			all,
			"names and namespaceSelector are both set",
		},
		{
			"namespace and a namespace selector",
			hook.RelatedRule{Namespace: "a", NamespaceSelector: json.RawMessage(some)},
			configMaps,
			all,
			"namespace and namespaceSelector are both set",
		},
		{
			"another namespace, v1",
			hook.RelatedRule{Namespace: "else"},
			configMaps,
			own,
			`namespace is "else"; expected "shop", the parent's`,
		},
		{
			"a namespace selector, v1", hook.RelatedRule{NamespaceSelector: json.RawMessage(some)}, configMaps, own,
			"needs version v2",
		},
		{
			"a namespace selector of nodes",
			hook.RelatedRule{NamespaceSelector: json.RawMessage(some)},
			nodes,
			all,
			"nodes.v1 is cluster-scoped",
		},
		{"a namespace of nodes", hook.RelatedRule{Namespace: "shop"}, nodes, all, "nodes.v1 is cluster-scoped"},
		{"an empty name", hook.RelatedRule{Names: []string{"a", ""}}, configMaps, all, "names has an empty name"},
		{
			"a selector that is none", hook.RelatedRule{LabelSelector: json.RawMessage(`[]`)}, configMaps, all,
			"labelSelector: ",
		},
		{
			"a selector that is not valid",
			hook.RelatedRule{NamespaceSelector: json.RawMessage(`{"matchExpressions":[{"key":"a","operator":"Near"}]}`)},
			configMaps,
			all,
			"namespaceSelector: ",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rule, err := checkRule(&test.declared, test.resource, test.scope)
			switch {
			case err != nil && (test.want == "" || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error %v, want %q", err, test.want)
			case err == nil && rule.Namespace != test.want:
				t.Errorf("about namespace %q, want %q", rule.Namespace, test.want)
			}
		})
	}
}
