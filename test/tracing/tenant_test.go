package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// TestTenant looks at the example tenant with "hookloop trace": created, changed while it is
// watched, and deleted while its finalize hook waits.
func TestTenant(t *testing.T) {
	k, j := start(t)
	declareTenant(k)
	trace := []string{"trace", "tenant", "blue", "--metrics-url", "http://" + shared.engine.Metrics}

	golden(k, "trace-created.txt", trace...)
	traceJSON(k, append(trace, "-o", "json")...)
	topTenant(k)
	spans(k, append(trace, "--spans", "--jaeger", j.URL())...)

	watching := k.Process(proc.Spec{
		Name: "hookloop trace --watch", Path: serve.Program("hookloop"),
		Args: append(trace, "--watch", "--kubeconfig", k.Cluster.Kubeconfig()),
	})
	k.Eventually("the first tree", func() error { return has(watching.Output(), "change     generation 1") })
	k.Patch(tenant, "blue", `{"spec": {"hold": true, "viewers": ["bob"]}}`)
	k.Eventually("the tree after a change", func() error { return has(watching.Output(), "change     generation 2") })
	if err := watching.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	<-watching.Done()
	k.Log(watching.Output())
	if err := watching.Err(); err != nil {
		t.Errorf("Ctrl-C ends --watch with %v:\n%s", err, watching.Output())
	}

	k.Delete(tenant, "blue")
	golden(k, "trace-held.txt", trace...)

	gone := k.Process(proc.Spec{
		Name: "hookloop trace --watch", Path: serve.Program("hookloop"),
		Args: append(trace, "--watch", "--kubeconfig", k.Cluster.Kubeconfig()),
	})
	k.Eventually("the tree of the held tenant", func() error { return has(gone.Output(), "held by the finalizer") })
	k.Patch(tenant, "blue", `{"spec": {"hold": false}}`)
	k.Eventually("the end of --watch", func() error {
		select {
		case <-gone.Done():
			return gone.Err()
		default:
			return fmt.Errorf("it runs; its output is\n%s", gone.Output())
		}
	})
	if err := has(gone.Output(), "tenant blue is deleted\n"); err != nil {
		t.Error(err)
	}
}

// traceReport holds the fields of the output of `hookloop trace -o json` that the test reads.
type traceReport struct {
	Nodes     []json.RawMessage `json:"nodes"`
	LastSyncs []struct {
		Controller string `json:"controller"`
		Result     string `json:"result"`
	} `json:"lastSyncs"`
	Change struct {
		Generation int64  `json:"generation"`
		TraceID    string `json:"traceID"`
	} `json:"change"`
}

// traceJSON checks the report that `hookloop trace -o json` prints about the tenant.
func traceJSON(k *kit.Kit, args ...string) {
	k.Helper()
	var r traceReport
	if err := json.Unmarshal([]byte(hookloop(k, args...)), &r); err != nil {
		k.Fatal(err)
	}
	if len(r.Nodes) != 5 || len(r.LastSyncs) != 1 || r.LastSyncs[0].Controller != "composite/tenant" ||
		r.LastSyncs[0].Result != "converged" || r.Change.Generation != 1 || len(r.Change.TraceID) != 32 {
		k.Errorf("the report as JSON is %+v", r)
	}
}

// topTenant compares the lines about the tenant in the table of "hookloop top" with a golden file.
// Other lines are about other tests.
func topTenant(k *kit.Kit) {
	k.Helper()
	out := hookloop(k, "top", "--once", "--interval", "1s", "--metrics-url", "http://"+shared.engine.Metrics)
	k.Log(out)
	own := regexp.MustCompile(`(?m)^(\d+ engine|CONTROLLER|composite/tenant|CACHE).*\n`)
	columns := regexp.MustCompile(` {2,}`)
	compare(k, "top-tenant.txt", columns.ReplaceAllString(strings.Join(own.FindAllString(out, -1), ""), "  "))
}

// tenant is the kind of the example's parents.
const tenant = "examples.hookloop.dev/v1/Tenant"

// declareTenant runs the example tenant with the traced engine, and creates its Tenant.
func declareTenant(k *kit.Kit) {
	k.Helper()
	dir := filepath.Join(cluster.Root(), "examples", "tenant")
	hook, address, err := serve.Hook(k.Context(), proc.Spec{
		Name: "tenant", Path: "python3",
		Args: []string{filepath.Join(dir, "..", "serve.py"), filepath.Join(dir, "hook.py"), "--port", "0"},
	})
	if hook != nil {
		k.Own(hook)
	}
	if err != nil {
		k.Fatal(err)
	}
	k.ApplyFile(filepath.Join(dir, "crd.yaml"))
	controller, err := os.ReadFile(filepath.Join(dir, "controller.yaml"))
	if err != nil {
		k.Fatal(err)
	}
	k.Apply(strings.NewReplacer("http://127.0.0.1:8080", address, "  name: tenant\n",
		"  name: tenant\n  labels: {engine: "+traced+"}\n").Replace(string(controller)))
	k.Cleanup(func() { k.Delete(kit.CompositeController, "tenant") })
	k.ApplyFile(filepath.Join(dir, "tenant.yaml"))
	k.Eventually("the Tenant is active", func() error {
		o, err := k.Lookup(tenant, "blue")
		if err != nil {
			return err
		}
		if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); phase != "Active" {
			return fmt.Errorf("its phase is %q", phase)
		}
		return nil
	})
}

// spans waits until the command draws the whole change.
func spans(k *kit.Kit, args ...string) {
	k.Helper()
	k.Eventually("the spans of the change", func() error {
		out := hookloop(k, args...)
		k.Log(out)
		return has(out, "\nchange tenants.examples.hookloop.dev", "├─ sync composite/tenant", "ask Sync",
			"create namespaces", "create resourcequotas", "create rolebindings")
	})
}

// has reports which of some texts is missing in an output.
func has(output string, texts ...string) error {
	for _, text := range texts {
		if !strings.Contains(output, text) {
			return fmt.Errorf("there is no %q in\n%s", text, output)
		}
	}
	return nil
}

// golden compares the output of a command with a golden file, until they are the same: controllers
// settle after their last write.
func golden(k *kit.Kit, file string, args ...string) {
	k.Helper()
	if *update {
		k.Eventually("the last sync has converged", func() error { return has(hookloop(k, args...), ": converged, ") })
		compare(k, file, hookloop(k, args...))
	}
	file = filepath.Join("testdata", file)
	want, err := os.ReadFile(file)
	if err != nil {
		k.Fatal(err)
	}
	k.Eventually("the output is "+file, func() error {
		if diff := cmp.Diff(string(want), normal(hookloop(k, args...))); diff != "" {
			return fmt.Errorf("-want +got:\n%s", diff)
		}
		return nil
	})
}

// compare compares a text with a golden file.
func compare(k *kit.Kit, file, got string) {
	k.Helper()
	file = filepath.Join("testdata", file)
	got = normal(got)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			k.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		k.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		k.Errorf("%s: -want +got:\n%s", file, diff)
	}
}

// volatile are the parts of an output that differ with every run, and their replacements.
var volatile = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`[0-9a-f]{32}`), "TRACE"},
	{regexp.MustCompile(`, (\d+m)?\d+s ago`), ", N s ago"},
	{regexp.MustCompile(`\d+\.\d ms`), "N ms"},
	// The table of top: columns are as wide as their longest value.
	{regexp.MustCompile(`(?m)^(\d+ engine, version )\S+, .*$`), "${1}VERSION, RATE; CACHE; TIME"},
	{regexp.MustCompile(`(?m)^(composite/tenant) .*?( +\S*[A-Z]\w*)?$`), "$1 N N N N N N N$2"},
}

func normal(output string) string {
	for _, v := range volatile {
		output = v.pattern.ReplaceAllString(output, v.with)
	}
	return output
}

// hookloop runs a command of hookloop as the admin, and returns its output.
func hookloop(k *kit.Kit, args ...string) string {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), time.Minute)
	defer cancel()
	var out, messages bytes.Buffer
	cmd := exec.CommandContext(ctx, serve.Program("hookloop"), append(args, "--kubeconfig", k.Cluster.Kubeconfig())...)
	cmd.Stdout = &out
	cmd.Stderr = &messages
	if err := cmd.Run(); err != nil {
		k.Fatalf("hookloop %s: %v\n%s%s", strings.Join(args, " "), err, messages.String(), out.String())
	}
	return out.String()
}

// TestDebuggingPage compares the outputs in the guide with the golden files.
func TestDebuggingPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(cluster.Root(), "docs", "guides", "debugging.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```console\n\\$ hookloop (.*?)\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	files := []string{"trace-created.txt", "trace-held.txt"}
	if len(blocks) != len(files) {
		t.Fatalf("the page has %d outputs of hookloop, want those of %s", len(blocks), files)
	}
	for i, file := range files {
		want, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), normal(blocks[i][2])); diff != "" {
			t.Errorf("the output of hookloop %s is not %s (-want +got):\n%s", blocks[i][1], file, diff)
		}
	}
}
