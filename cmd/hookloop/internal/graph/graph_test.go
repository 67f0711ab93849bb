package graph_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/graph"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// cluster is a Source that holds its objects.
type cluster []*object.Object

func (w cluster) OwnedBy(owner types.UID) []object.Ref {
	var all []object.Ref
	for _, o := range w {
		for _, ref := range o.OwnerReferences() {
			if ref.UID == owner {
				all = append(all, o.Ref())
			}
		}
	}
	return all
}

func (w cluster) DependenciesOf(o *object.Object) []object.Ref {
	var all []object.Ref
	for _, d := range graph.Dependencies(o) {
		all = append(all, object.Ref{GVK: d.GVK, Namespace: d.Namespace, Name: d.Name})
	}
	return all
}

func (w cluster) Read(_ context.Context, refs []object.Ref) ([]graph.Found, error) {
	found := make([]graph.Found, len(refs))
	for i, ref := range refs {
		for _, o := range w {
			if o.Ref() == ref {
				found[i].Object = o
			}
		}
	}
	return found, nil
}

// counted is a Source that counts the objects that are read.
type counted struct {
	cluster
	reads int
}

func (c *counted) Read(ctx context.Context, refs []object.Ref) ([]graph.Found, error) {
	c.reads += len(refs)
	return c.cluster.Read(ctx, refs)
}

// made returns an object; owners are the names of its owners, rest is JSON behind the metadata.
func made(t *testing.T, kind, name, owners, rest string) *object.Object {
	t.Helper()
	var refs []string
	for _, owner := range strings.Fields(owners) {
		refs = append(refs, fmt.Sprintf(`{"apiVersion":"x/v1","kind":"K","name":%q,"uid":%q}`, owner, owner))
	}
	o, err := object.Decode([]byte(fmt.Sprintf(`{"apiVersion":"x/v1","kind":%q,"metadata":{"namespace":"demo","name":%q,`+
		`"uid":%q,"ownerReferences":[%s]}%s}`, kind, name, name, strings.Join(refs, ","), rest)))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func status(conditions string) string { return `,"status":{"conditions":[` + conditions + `]}` }

func database(t *testing.T) cluster {
	ready := `{"type":"Ready","status":"True"}`
	return cluster{
		made(t, "Cluster", "mo", "", status(`{"type":"Ready","status":"False","reason":"Waiting","message":"1 of 3"}`)),
		made(t, "Log", "log", "mo", status(ready)),
		made(t, "DN", "dn", "mo", `,"deps":{"log":{"apiVersion":"x/v1","kind":"Log","metadata":{"name":"log"}}}`+

			status(`{"type":"DependenciesMet","status":"True"},{"type":"Ready","status":"False","reason":"Go\u001b[31m"}`)),
		made(t, "CN", "cn", "mo", `,"deps":{"a":{"apiVersion":"x/v1","kind":"DN","name":"dn"},`+
			`"b":{"apiVersion":"x/v1","kind":"Secret","name":"<key>"}}`),
		made(t, "Pod", "log-0", "log", `,"status":{"conditions":"of another form"}`),
	}
}

func build(t *testing.T, w cluster, limit int) *graph.Graph {
	t.Helper()
	g, err := graph.Build(t.Context(), w, w[0], limit)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestText(t *testing.T) {
	want := strings.TrimPrefix(`
Cluster mo  Ready=False
│   Ready=False Waiting: 1 of 3
├─ CN cn  waits for DN dn, Secret <key>
├─ DN dn  Ready=False  waits for Log log
│      Ready=False Go [31m
└─ Log log  Ready=True
   └─ Pod log-0
Secret <key>  does not exist
`, "\n")
	if diff := cmp.Diff(want, build(t, database(t), 100).Text()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

func TestMermaid(t *testing.T) {
	want := strings.TrimPrefix(`
flowchart TD
  n0["Cluster mo<br/>Ready=False"]:::waiting
  n1["CN cn"]
  n2["DN dn<br/>Ready=False"]:::waiting
  n3["Log log<br/>Ready=True"]:::ready
  n4["Secret #lt;key#gt;<br/>does not exist"]:::missing
  n5["Pod log-0"]
  n0 --> n1
  n0 --> n2
  n0 --> n3
  n1 -. waits for .-> n2
  n1 -. waits for .-> n4
  n2 -. waits for .-> n3
  n3 --> n5
  classDef ready stroke:#2a2
  classDef waiting stroke:#c60
  classDef missing stroke-dasharray:4
`, "\n")
	if diff := cmp.Diff(want, build(t, database(t), 100).Mermaid()); diff != "" {
		t.Errorf("Mermaid (-want +got):\n%s", diff)
	}
}

func TestDOT(t *testing.T) {
	got := build(t, database(t), 100).DOT()
	for _, want := range []string{
		"digraph objects {", `n2 [label="DN dn\nReady=False"]`, `n4 [label="Secret <key>\ndoes not exist", style=dashed]`,
		"n0 -> n1\n", `n2 -> n3 [style=dashed, label="waits for"]`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("DOT has no %s:\n%s", want, got)
		}
	}
}

// TestLimit keeps the objects nearest to the root and reports that there are more.
func TestLimit(t *testing.T) {
	g := build(t, database(t), 4)
	if len(g.Nodes) != 4 || !g.Truncated || !strings.Contains(g.Text(), "there are more objects: the limit is 4") {
		t.Errorf("limit 4: %d objects, truncated %t:\n%s", len(g.Nodes), g.Truncated, g.Text())
	}
}

// TestLimitOfReads reads no object beyond the limit.
func TestLimitOfReads(t *testing.T) {
	w := cluster{made(t, "A", "a", "", "")}
	for i := range 50 {
		w = append(w, made(t, "B", fmt.Sprintf("b%d", i), "a", ""))
	}
	source := &counted{cluster: w}
	g, err := graph.Build(t.Context(), source, w[0], 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Nodes) != 10 || source.reads != 9 || !g.Truncated {
		t.Errorf("limit 10: %d objects by %d reads, truncated %t", len(g.Nodes), source.reads, g.Truncated)
	}
}

// TestCircles ends, and draws an object with two owners once.
func TestCircles(t *testing.T) {
	deps := `,"deps":{"x":[{"apiVersion":"x/v1","kind":"A","name":"a"},{"apiVersion":"x/v1","kind":"B","name":"b"}]}`
	w := cluster{made(t, "A", "a", "b", deps), made(t, "B", "b", "a", deps), made(t, "C", "c", "a b", "")}
	want := strings.TrimPrefix(`
A a  waits for A a, B b
├─ B b  waits for A a, B b
│  ├─ A a  waits for A a, B b
│  └─ C c
└─ C c
`, "\n")
	if diff := cmp.Diff(want, build(t, w, 100).Text()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

// TestNamesThatUsersWrite have no control characters: a dependency may name anything.
func TestNamesThatUsersWrite(t *testing.T) {
	w := cluster{made(t, "A", "a", "",
		`,"deps":{"x":{"apiVersion":"x/v1","kind":"K\u001b[31m","namespace":"n\nm","name":"\u001b]0;x\u0007\u202ey"}}`)}
	g := build(t, w, 100)
	for form, text := range map[string]string{"text": g.Text(), "Mermaid": g.Mermaid(), "DOT": g.DOT()} {
		if i := strings.IndexAny(text, "\x1b\a\u202e"); i >= 0 || strings.Contains(text, "n\nm") {
			t.Errorf("%s has a control character:\n%q", form, text)
		}
	}
}

// TestCircleOfOwnersBehindADependency is drawn although none of its objects is the first.
func TestCircleOfOwnersBehindADependency(t *testing.T) {
	w := cluster{
		made(t, "R", "r", "", `,"deps":{"x":{"apiVersion":"x/v1","kind":"A","name":"a"}}`),
		made(t, "A", "a", "b", ""), made(t, "B", "b", "a", ""),
	}
	want := strings.TrimPrefix(`
R r  waits for A a
A a
└─ B b
   └─ A a
`, "\n")
	if diff := cmp.Diff(want, build(t, w, 100).Text()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

// TestGraphLeavesOutForgedObjects has an object of another namespace name the root as its owner.
func TestGraphLeavesOutForgedObjects(t *testing.T) {
	forged, err := object.Decode([]byte(`{"apiVersion":"x/v1","kind":"K","metadata":{"namespace":"evil","name":"forged",` +
		`"uid":"forged","ownerReferences":[{"apiVersion":"x/v1","kind":"K","name":"root","uid":"root"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	root := made(t, "K", "root", "", "")
	g, err := graph.Build(context.Background(), cluster{root, made(t, "K", "own", "root", ""), forged}, root, 10)
	if err != nil || len(g.Nodes) != 2 {
		t.Errorf("Build = %d nodes, %v; want the root and its own object", len(g.Nodes), err)
	}
}
