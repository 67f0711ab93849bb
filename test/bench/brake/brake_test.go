// Package brake measures loops of writes, with and without the circuit, and their cost to another
// controller: go test ./test/bench/brake -measure -v. Without the flag it does nothing.
//
// Its data comes from the API server's audit log and from the edits of the bystander. It is not a
// test of speed: it prints a table.
package brake

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var measure = flag.Bool("measure", false, "run the measurements")

const (
	// parents is the number of parents with a loop.
	parents = 5
	// window is the duration of each measurement.
	window = 15 * time.Second
	// pace is the time between two edits of the bystander.
	pace = 50 * time.Millisecond
)

func TestMain(m *testing.M) { cluster.Main(m) }

// loop is one cause of an endless loop of writes. It declares the controllers.
type loop struct {
	name  string
	start func(k *kit.Kit, labels map[string]any)
}

var loops = []loop{
	{"hook at random", random},
	{"two controllers on one status", two},
	{"a built-in kind as parent", builtIn},
}

// TestBrake prints the loops' writes a minute and the bystander's latency.
func TestBrake(t *testing.T) {
	if !*measure {
		t.Skip("it takes minutes; run it with -measure")
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "loop (5 parents)\tcircuit\twrites a minute\tbystander p50\tp99\tedits")
	for _, l := range loops {
		for _, c := range []struct{ name, flag string }{{"off", "--rewrite-limit=0"}, {"open", "--rewrite-limit=100"}} {
			w := world(t, c.flag)
			w.row(table, "none", "", w.Name+"-loop")
			w.flap(l, c.name == "open")
			w.row(table, l.name, c.name, w.Name+"-loop")
			if err := w.engine.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + text.String())
}

// TestShare prints the bystander's latency next to a loop that uses up all requests to the API
// server.
func TestShare(t *testing.T) {
	if !*measure {
		t.Skip("it takes a minute; run it with -measure")
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(table,
		"loop (5 parents), 20 requests a second\tcircuit\twrites a minute\tbystander p50\tp99\tedits")
	w := world(t, "--rewrite-limit=0", "--client-go-qps=20", "--client-go-burst=20")
	w.row(table, "none", "", w.Name+"-loop")
	w.flap(loops[0], false)
	w.row(table, loops[0].name, "off", w.Name+"-loop")
	if err := w.engine.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + text.String())
}

// bench is an engine with a bystander.
type bench struct {
	*kit.Kit
	engine *serve.Engine
	labels map[string]any
	edits  int
}

func world(t *testing.T, flags ...string) *bench {
	t.Helper()
	b := &bench{Kit: kit.New(t)}
	crds := filepath.Join(cluster.Root(), "manifests", "crds")
	for _, args := range [][]string{
		{"apply", "--server-side", "-f", crds}, {"wait", "--for=condition=Established", "--timeout=30s", "-f", crds},
	} {
		if out, err := b.Cluster.Kubectl(b.Context(), args...); err != nil {
			t.Fatalf("kubectl: %v\n%s", err, out)
		}
	}
	b.CRD("Web", "Namespaced")
	b.CRD("Bystander", "Namespaced")
	b.labels = map[string]any{"test": b.Name}
	var err error
	b.engine, err = serve.Start(b.Context(), serve.Config{
		Kubeconfig: b.Cluster.Kubeconfig(), Flags: append([]string{"--target-label-selector=test=" + b.Name}, flags...),
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Run(
		kit.Composite{
			Parent:   "bystanders",
			Children: []string{"v1/configmaps InPlace"},
			Sync:     b.Hook(kit.Mirror).URL,
			Labels:   b.labels,
		},
	)
	return b
}

// flap starts a loop. If its circuits are to open, it waits until all have.
func (b *bench) flap(l loop, open bool) {
	b.Helper()
	other := *b.Kit
	other.Name = b.Name + "-loop"
	l.start(&other, b.labels)
	if !open {
		return
	}
	b.Eventually("all circuits are open", func() error {
		for i := range parents {
			if messages := b.Events(
				flapper(i),
				"SyncError",
			); !slices.ContainsFunc(
				messages,
				func(m string) bool { return strings.Contains(m, "the circuit is open") },
			) {
				return fmt.Errorf("%s is not: %q", flapper(i), messages)
			}
		}
		return nil
	})
}

func flapper(i int) string { return fmt.Sprintf("flapper-%d", i) }

// row measures for a window.
func (b *bench) row(table *tabwriter.Writer, loop, circuit, controller string) {
	b.Helper()
	mark := b.Mark()
	began := time.Now()
	var took []time.Duration
	for time.Since(began) < window {
		took = append(took, b.edit())
		time.Sleep(pace)
	}
	minutes := time.Since(began).Minutes()
	all, err := b.Cluster.Writes(mark)
	if err != nil {
		b.Fatal(err)
	}
	writes := 0
	for _, w := range all {
		mine := w.Namespace == b.Namespace || w.Name == controller
		if kit.IsEngine(w) && mine && !strings.HasPrefix(w.Name, "bystander") && w.Resource != "events" {
			writes++
		}
	}
	slices.Sort(took)
	at := func(p float64) time.Duration { return took[int(p*float64(len(took)-1))].Round(100 * time.Microsecond) }
	_, _ = fmt.Fprintf(table, "%s\t%s\t%.0f\t%s\t%s\t%d\n", loop, circuit, float64(writes)/minutes, at(.5), at(.99),
		len(took))
}

// edit changes the bystander and returns the time until its child has followed.
func (b *bench) edit() time.Duration {
	b.Helper()
	b.edits++
	text := fmt.Sprint(b.edits)
	child := map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"name": "bystander"},
		"data":       map[string]any{"text": text},
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": b.Group + "/v1",
		"kind":       "Bystander",
		"metadata":   map[string]any{"name": "bystander", "namespace": b.Namespace},
		"spec":       map[string]any{"answer": map[string]any{"children": []any{child}}},
	}}
	if err := b.TryApply(o); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	for {
		o, err := b.Lookup("v1/ConfigMap", "bystander")
		if err == nil && o.Object["data"].(map[string]any)["text"] == text {
			return time.Since(began)
		}
		if time.Since(began) > kit.Deadline {
			b.Fatalf("the bystander's child does not follow: %v", err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func random(k *kit.Kit, labels map[string]any) {
	var n atomic.Int64
	hook := k.Hook(func(r kit.Request) any {
		return map[string]any{"children": []any{
			map[string]any{
				"apiVersion": "v1",
				"kind":       "ConfigMap",
				"metadata":   map[string]any{"name": r.Parent.GetName()},
				"data":       map[string]any{"text": fmt.Sprint(n.Add(1))},
			},
		}}
	})
	k.Run(kit.Composite{Parent: "webs", Children: []string{"v1/configmaps InPlace"}, Sync: hook.URL, Labels: labels})
	webs(k)
}

func two(k *kit.Kit, labels map[string]any) {
	for _, color := range []string{"red", "blue"} {
		controller := *k
		controller.Name = k.Name + "-" + color
		hook := k.Hook(func(kit.Request) any { return map[string]any{"status": map[string]any{"color": color}} })
		controller.Declare(kit.Composite{Parent: "webs", Sync: hook.URL, Labels: labels})
	}
	webs(k)
}

func webs(k *kit.Kit) {
	for i := range parents {
		k.Apply("{apiVersion: $GROUP/v1, kind: Web, metadata: {name: " + flapper(i) + ", namespace: $NS}}")
	}
}

func builtIn(k *kit.Kit, labels map[string]any) {
	hook := k.Hook(func(kit.Request) any { return map[string]any{"status": map[string]any{"replicas": 7}} })
	k.Run(
		kit.Composite{Parent: "apps/v1/deployments", Only: map[string]any{"kit": "flaps"}, Sync: hook.URL, Labels: labels})
	for i := range parents {
		k.Apply(
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: ` + flapper(i) + `, namespace: $NS, labels: {kit: flaps}},
			spec: {replicas: 0, selector: {matchLabels: {app: web}}, template: {
			metadata: {labels: {app: web}}, spec: {containers: [{name: server, image: nginx}]}}}}`,
		)
	}
}
