package memapi_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/internal/memapi"
	"github.com/hookloop/hookloop/test/cluster"
	"k8s.io/client-go/rest"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// TestSameAnswers sends the same requests to the API server in memory and to a real one.
func TestSameAnswers(t *testing.T) {
	c := cluster.Start(t)
	cluster.NeedNewest(t, c, "internal/memapi answers as the newest version does, and errors have changed")
	real := c.Admin()
	memory, err := memapi.New(memapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(memory.Close)
	define(t, real, memory.Config())
	requests := 0
	for i, s := range stories(t) {
		requests += len(s.steps)
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			namespace := fmt.Sprintf("story%d", i)
			expected := newPlayer(t, real, namespace)
			got := newPlayer(t, memory.Config(), namespace)
			begin := step{do: "POST /api/v1/namespaces", body: `{"metadata":{"name":"{ns}"}}`, codeOnly: true}
			if a, b := expected.play(begin), got.play(begin); a.Code != 201 || b.Code != 201 {
				t.Fatalf("namespace: real %v, memory %v", a, b)
			}
			awaitServiceAccount(t, expected)
			for n, step := range s.steps {
				compare(t, n, step, expected, got)
			}
		})
	}
	t.Logf("%d requests", requests)
}

// compare plays one step on both servers.
func compare(t *testing.T, n int, s step, expected, got *player) {
	t.Helper()
	mine := got.play(s)
	var diff string
	same := func() bool {
		before := maps.Clone(expected.ordinals)
		diff = cmp.Diff(expected.play(s).text(), mine.text())
		if diff != "" {
			expected.ordinals = before
		}
		return diff == ""
	}
	if !same() && (!s.await || !await(t, same)) {
		t.Errorf("step %d: %s (-real +memory):\n%s", n+1, s.do, diff)
	}
}

// awaitServiceAccount waits until the real controllers have made the objects that each namespace
// has.
func awaitServiceAccount(t *testing.T, p *player) {
	t.Helper()
	for _, path := range []string{"serviceaccounts/default", "configmaps/kube-root-ca.crt"} {
		if !await(t, func() bool {
			return p.play(step{do: "GET /api/v1/namespaces/{ns}/" + path, codeOnly: true}).Code == 200
		}) {
			t.Fatalf("no %s", path)
		}
	}
}

// define creates the CRDs of the stories on both servers, and waits until they are served.
func define(t *testing.T, configs ...*rest.Config) {
	t.Helper()
	for _, config := range configs {
		p := newPlayer(t, config, "default")
		for body := range strings.SplitSeq(crds, "\n---\n") {
			create := step{do: "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", body: body}
			if a := p.play(create); a.Code != 201 {
				t.Fatalf("CustomResourceDefinition: %s", a.text())
			}
		}
		for _, plural := range []string{"websites", "plains"} {
			if !await(t, func() bool {
				return p.play(step{do: "GET /apis/example.com/v1/" + plural, codeOnly: true}).Code == 200
			}) {
				t.Fatalf("%s are not served", plural)
			}
		}
	}
}

const crds = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
 "metadata":{"name":"websites.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
 "names":{"plural":"websites","singular":"website","kind":"Website","shortNames":["web"]},"versions":[{
  "name":"v1","served":true,"storage":true,
  "subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},
  "selectableFields":[{"jsonPath":".spec.domain"}],
  "schema":{"openAPIV3Schema":{"type":"object","properties":{
   "spec":{"type":"object","required":["domain"],
    "x-kubernetes-validations":[{"rule":"self.replicas <= 10","message":"at most 10 replicas"},
      {"rule":"self.domain == oldSelf.domain","message":"domain is immutable"}],
    "properties":{"domain":{"type":"string","minLength":3},
     "replicas":{"type":"integer","default":1,"minimum":0},
     "mode":{"type":"string","enum":["fast","slow"]},
     "pages":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
      "items":{"type":"object","required":["name"],
       "properties":{"name":{"type":"string"},"title":{"type":"string"}}}}}},
   "status":{"type":"object","properties":{"replicas":{"type":"integer"},"url":{"type":"string"}}}}}}}]}}
---
{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
 "metadata":{"name":"plains.example.com"},"spec":{"group":"example.com","scope":"Cluster",
 "names":{"plural":"plains","singular":"plain","kind":"Plain"},"versions":[{
  "name":"v1","served":true,"storage":true,
  "schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`
