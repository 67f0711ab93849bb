package verify

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
)

// gadgets are custom resources with required fields.
const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.demo.example.com}
spec:
  group: demo.example.com
  scope: Cluster
  names: {kind: Gadget, plural: gadgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [size, mode, parts]
            properties:
              size: {type: integer, minimum: 3}
              mode: {type: string, enum: [fast, slow]}
              color: {type: string, default: blue}
              parts:
                type: array
                minItems: 1
                items: {type: object, required: [at], properties: {at: {type: string, format: date-time}}}
`

// TestMadeUpObjects makes up related objects for rules. Each rule must select them.
func TestMadeUpObjects(t *testing.T) {
	t.Parallel()
	s, err := load(Options{Files: []string{file(t, declaring), file(t, gadgets)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		rule hook.RelatedRule
		want []string // names, or parts of the one object
		not  string
	}{
		{"all", hook.RelatedRule{APIVersion: "v1", Resource: "configmaps"}, []string{"shop/related-1", "shop/related-2"}, ""},
		{"names", hook.RelatedRule{APIVersion: "v1", Resource: "secrets", Names: []string{"a", "b", "c"}},
			[]string{"shop/a", "shop/b", "shop/c"}, ""},
		{"another namespace", hook.RelatedRule{APIVersion: "v1", Resource: "pods", Namespace: "other", Names: []string{"a"}},
			[]string{"other/a", `"nodeName":"node"`, `"restartPolicy":"Always"`}, ""},
		{"cluster-scoped", hook.RelatedRule{APIVersion: "v1", Resource: "nodes", Names: []string{"a"}},
			[]string{`"name":"a"`}, `"namespace"`},
		{"labels", hook.RelatedRule{APIVersion: "v1", Resource: "configmaps", LabelSelector: json.RawMessage(
			`{"matchLabels":{"a":"1"},"matchExpressions":[{"key":"b","operator":"In","values":["2","3"]},
				{"key":"c","operator":"Exists"},{"key":"d","operator":"DoesNotExist"},
				{"key":"e","operator":"NotIn","values":["4"]}]}`)}, []string{`{"a":"1","b":"2","c":"related"}`}, `"d"`},
		{"required fields", hook.RelatedRule{APIVersion: "demo.example.com/v1", Resource: "gadgets", Names: []string{"a"}},
			[]string{`"size":3`, `"mode":"fast"`, `"color":"blue"`, `"at":"2026-01-01T00:00:00Z"`}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r, found := s.resources.find(ruleResource(test.rule))
			if !found {
				t.Fatal("the resource is not known")
			}
			all, err := s.makeUp(test.rule, r)
			if err != nil {
				t.Fatal(err)
			}
			if len(test.rule.Names) > 0 && len(all) != len(test.rule.Names) {
				t.Errorf("got %d objects, want %d", len(all), len(test.rule.Names))
			}
			var got strings.Builder
			for _, o := range all {
				got.WriteString(o.Ref().NamespacedName() + " " + string(o.Raw()) + "\n")
			}
			for _, want := range test.want {
				if !strings.Contains(got.String(), want) {
					t.Errorf("got %s, want it to contain %s", &got, want)
				}
			}
			if test.not != "" && strings.Contains(got.String(), test.not) {
				t.Errorf("got %s, want it without %s", &got, test.not)
			}
		})
	}
	contradiction := hook.RelatedRule{APIVersion: "v1", Resource: "pods", LabelSelector: json.RawMessage(
		`{"matchLabels":{"a":"1"},"matchExpressions":[{"key":"a","operator":"DoesNotExist"}]}`)}
	if _, err := s.makeUp(contradiction, s.resources.guess(namespaceKind)); err == nil ||
		!strings.Contains(err.Error(), "no labels match the selector") {
		t.Errorf("got %v for a selector that matches nothing", err)
	}
}

// serveRelating serves a webhook that selects ConfigMaps with the label for=demo, and answers by a
// function of their data.
func serveRelating(t *testing.T, answer func(data []map[string]string) (any, error)) []string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/customize" {
			_, _ = w.Write([]byte(`{"relatedResources":[{"apiVersion":"v1","resource":"configmaps",
				"labelSelector":{"matchLabels":{"for":"demo"}}}]}`))
			return
		}
		var q struct {
			Related map[string]map[string]struct{ Data map[string]string }
		}
		err := json.NewDecoder(r.Body).Decode(&q)
		var data []map[string]string
		for _, o := range q.Related["ConfigMap.v1"] {
			data = append(data, o.Data)
		}
		state, failed := answer(data)
		if err != nil || failed != nil {
			http.Error(w, "no key", http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"status": state, "children": []any{}, "finalized": true})
	}))
	t.Cleanup(server.Close)
	return []string{"sync=" + server.URL + "/sync", "finalize=" + server.URL + "/finalize",
		"customize=" + server.URL + "/customize"}
}

// relating is a controller with a customize hook, and a parent.
var relating = edited(declaring, "    finalize:", `    customize:
      version: v2
      webhook:
        url: http://hook/customize
    finalize:`)

// relatedFile has an object that the rule of serveRelating selects.
const relatedFile = `
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: colors
  namespace: shop
  labels:
    for: demo
data:
  color: red
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: others
  namespace: shop
data:
  color: green
`

// TestRelatedObjects asks hooks that depend on related objects.
func TestRelatedObjects(t *testing.T) {
	t.Parallel()
	calls := 0
	for _, test := range []struct {
		name, files string
		answer      func([]map[string]string) (any, error)
		want        []string
		skipped     string
	}{
		{"a fault that shows with related objects alone", "", func(data []map[string]string) (any, error) {
			calls++
			if len(data) == 0 {
				return nil, nil
			}
			return map[string]any{"calls": calls}, nil
		}, []string{ruleRepeat}, ""},
		{"a field that made-up objects lack", "", func(data []map[string]string) (any, error) {
			if len(data) > 0 && data[0]["color"] == "" {
				return nil, errParent
			}
			return nil, nil
		}, nil, `answers with related objects: the hook fails with the made-up ConfigMap.v1 "related-1": 500: "no key"; ` +
			"expected related objects in a file of -f"},
		{"the same with an object of the files", relatedFile, func(data []map[string]string) (any, error) {
			if len(data) > 0 && (len(data) > 1 || data[0]["color"] != "red") {
				return nil, errParent
			}
			return nil, nil
		}, nil, ""},
		{"an error about an object of the files", relatedFile, func(data []map[string]string) (any, error) {
			if len(data) > 0 {
				return nil, errParent
			}
			return nil, nil
		}, []string{ruleCallFailed}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			report := verify(t, Options{Addresses: serveRelating(t, test.answer), Version: "v2",
				Files: []string{file(t, relating+test.files)}})
			if diff := cmp.Diff(test.want, ids(report, Fault)); diff != "" {
				t.Errorf("faults (-want +got):\n%s\n%s", diff, text(t, report))
			}
			if got := strings.Join(report.Skipped, "\n"); got != test.skipped {
				t.Errorf("skipped %q, want %q", got, test.skipped)
			}
		})
	}
}
