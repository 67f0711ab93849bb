package verify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/cluster"
)

// The ids of the findings.
const (
	varies   = "answer-varies"
	order    = "order-matters"
	clock    = "time-in-answer"
	echoed   = "server-fields-echoed"
	endless  = "no-fixed-point"
	finalize = "finalize-never-ends"
)

// languages are those of the hooks in the folder hooks. Maps have a random order in Go, and that of
// the question in Python and TypeScript.
var languages = []struct {
	name     string
	spec     func(t *testing.T) proc.Spec
	mapOrder string
}{{"go", golang, varies}, {"python", pythonHook, order}, {"typescript", typescript, order}}

func hookFile(name string) string {
	return filepath.Join(cluster.Root(), "test", "verify", "hooks", name)
}

func golang(t *testing.T) proc.Spec {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "hook")
	build := exec.Command("go", "build", "-o", binary, hookFile("golang"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return proc.Spec{Path: binary, Args: []string{"--listen", "127.0.0.1:0"}}
}

func pythonHook(*testing.T) proc.Spec {
	return proc.Spec{
		Path: "/usr/bin/python3", Args: []string{hookFile("hook.py"), "--listen", "127.0.0.1:0"},
		Env: []string{"PYTHONPATH=" + filepath.Join(cluster.Root(), "sdk", "python"), "PYTHONDONTWRITEBYTECODE=1"},
	}
}

func typescript(*testing.T) proc.Spec {
	return proc.Spec{Path: "node", Args: []string{hookFile("hook.mjs"), "--listen", "127.0.0.1:0"}}
}

// planted are the parents that a hook is asked about, with the faults that it then has. The
// question is a part of the one that shows the fault; an empty one is not compared.
var planted = []struct {
	parent, want, question string
}{
	{"good", "", ""},
	{"map-order", "that of the language", ""},
	{"first-related", "that of the language", "the parent, with related objects"},
	{"hash-of-spec", order, "the parent, without children, with another order of keys and of observed objects"},
	{"time", clock, "the parent, without children"},
	{"seconds", clock, "the parent, without children"},
	{"time-without-spec", clock, "the parent without a spec"},
	{"random", varies, "the parent, without children"},
	{"random-when-deleted", varies, "the parent being deleted, with 2 child objects"},
	{"counter", endless, "the parent, with what the engine has written"},
	{"compare", endless, "the parent, with what the engine has written"},
	{"echo", echoed, "the parent, with children that a user has changed"},
	{"never-finalized", finalize, "the parent being deleted, with 0 child objects"},
	{"waits-for-what-it-keeps", finalize, "the parent being deleted, with 2 child objects"},
}

// TestPlantedFaults asks a hook of each language about parents that cause one fault each. The
// report has this fault alone, with the smallest request that shows it.
func TestPlantedFaults(t *testing.T) {
	t.Parallel()
	for _, language := range languages {
		t.Run(language.name, func(t *testing.T) {
			t.Parallel()
			address := start(t, example{name: language.name, hook: language.spec(t)})
			for _, fault := range planted {
				t.Run(fault.parent, func(t *testing.T) {
					t.Parallel()
					want := []string{fault.want}
					switch fault.want {
					case "that of the language":
						want = []string{language.mapOrder}
					case "":
						want = nil
					}
					report := verify(t, "--hook="+address, "--insecure", "--controller=testdata/demos.yaml",
						"--parent="+parentFile(t, fault.parent))
					if diff := cmp.Diff(want, report.ids()); diff != "" {
						t.Fatalf("findings (-want +got):\n%s\n%+v", diff, report.Findings)
					}
					if len(report.Skipped) > 0 {
						t.Errorf("not checked: %v", report.Skipped)
					}
					for _, f := range report.Findings {
						if fault.question != "" && !strings.HasPrefix(f.Question, fault.question) {
							t.Errorf("the question is %q, want %q", f.Question, fault.question)
						}
						if size := compact(t, f.Request); f.ID != finalize && (!f.Shrunk || size > 1200) {
							t.Errorf("the request of %d bytes is not shrunk:\n%s", size, f.Request)
						}
					}
				})
			}
		})
	}
}

// compact returns the bytes of JSON without white space.
func compact(t *testing.T, data []byte) int {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		t.Fatal(err)
	}
	return b.Len()
}

// ids returns the ids of the findings, each once.
func (r report) ids() []string {
	var all []string
	for _, f := range r.Findings {
		if !slices.Contains(all, f.ID) {
			all = append(all, f.ID)
		}
	}
	return all
}

// parentFile writes a parent with some name.
func parentFile(t *testing.T, name string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "parent.yaml")
	text := fmt.Sprintf(`apiVersion: demo.example.com/v1
kind: Demo
metadata: {name: %s, namespace: shop}
spec:
  image: nginx:1.29-alpine
  replicas: 2
  settings: {a: one, b: two, c: three, d: four, e: five, f: six, g: seven, h: eight, i: nine, j: ten}
`, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
