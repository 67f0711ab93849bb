package manifest_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the want sections of testdata")

// TestFiles reads the files of each story in testdata, and compares the objects with their
// positions, or the error, with the section "want".
func TestFiles(t *testing.T) {
	t.Parallel()
	stories, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(stories) == 0 {
		t.Fatalf("got %v and %v, expected stories", stories, err)
	}
	for _, story := range stories {
		t.Run(strings.TrimSuffix(filepath.Base(story), ".txtar"), func(t *testing.T) {
			t.Parallel()
			tell(t, story)
		})
	}
}

func tell(t *testing.T, story string) {
	t.Helper()
	archive, err := txtar.ParseFile(story)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	want := archive.Files[len(archive.Files)-1]
	if want.Name != "want" {
		t.Fatalf("the last section is %q, expected want", want.Name)
	}
	for _, f := range archive.Files[:len(archive.Files)-1] {
		name := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		data := strings.ReplaceAll(string(f.Data), "<TAB>", "\t")
		if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := strings.ReplaceAll(describe(dir), dir, "DIR")
	if *update {
		archive.Files[len(archive.Files)-1].Data = []byte(got)
		if err := os.WriteFile(story, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want.Data), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// describe returns what Read, CRDs and Controllers make of a directory.
func describe(dir string) string {
	var out strings.Builder
	set, err := manifest.Read(strings.NewReader(""), dir)
	if err != nil {
		return fmt.Sprintf("Read: %v\n", err)
	}
	for _, o := range set.Objects {
		fmt.Fprintf(&out, "%s %s\n", o.At(""), o.Ref())
	}
	if crds, err := set.CRDs(); err != nil {
		fmt.Fprintf(&out, "CRDs: %v\n", err)
	} else {
		for _, c := range crds {
			fmt.Fprintf(&out, "CRD %s: version at %s\n", c.Definition.Name, c.At("spec.versions[0].name"))
		}
	}
	controllers, err := set.Controllers()
	if err != nil {
		fmt.Fprintf(&out, "Controllers: %v\n", err)
	}
	for _, c := range controllers {
		fmt.Fprintf(&out, "%s: sync at %s\n", c, c.At("spec.hooks.sync"))
	}
	return out.String()
}

// TestAt finds fields by the forms of path that validators write.
func TestAt(t *testing.T) {
	t.Parallel()
	set, err := manifest.Read(strings.NewReader(`apiVersion: v1
kind: ConfigMap
metadata:
  name: places
  labels: &labels
    app.kubernetes.io/name: web
  annotations:
    <<: *labels
    a.b: c
data:
  a: {b: [1, {c: 2}, [3]]}
  copy: *labels
`), "-")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"":                "1:1",
		"kind":            "2:1",
		".metadata.name":  "4:3",
		"metadata.labels": "5:3",
		"metadata.labels[app.kubernetes.io/name]":     "6:5",
		`metadata.labels["app.kubernetes.io/name"]`:   "6:5",
		"metadata.labels.app.kubernetes.io/name":      "6:5",
		"metadata.annotations.a.b":                    "9:5",
		"metadata.annotations.app.kubernetes.io/name": "6:5",
		"data.a.b[0]":                      "11:11",
		"data.a.b[1].c":                    "11:15",
		"data.a.b[2][0]":                   "11:23",
		"data.a.b[7].c":                    "11:7",
		"data.copy.app.kubernetes.io/name": "6:5",
		"spec.replicas":                    "1:1",
		"metadata.finalizers[0]":           "3:1",
	} {
		if got := set.Objects[0].At(path).String(); got != "<stdin>:"+want {
			t.Errorf("At(%q): got %s, want <stdin>:%s", path, got, want)
		}
	}
}

// TestLimits refuses input that is too large, without building it.
func TestLimits(t *testing.T) {
	t.Parallel()
	bomb := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		items := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", ")
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, items)
	}
	for name, test := range map[string]struct{ text, want string }{
		"aliases": {bomb, "<stdin>:1:1: the aliases expand to more than 128 MiB, expected less"},
		"long text": {"a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a, ", 200) + "*a]\n",
			"<stdin>:1:1: the aliases expand to more than 128 MiB, expected less"},
		"bytes": {strings.Repeat("x", 33<<20),
			"<stdin>: the files have more than 32 MiB in total, expected less"},
		"nodes": {"a: [" + strings.Repeat("x,", 2_000_000) + "]",
			"<stdin>: the files have more than 2000000 fields and items, expected less"},
		"documents": {strings.Repeat("---\n", 20_001),
			"<stdin>:20001:1: the files have more than 20000 documents, expected less"},
		"itself": {"a: &a [*a]", "<stdin>:1:8: the anchor \"a\" contains itself"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := manifest.Read(strings.NewReader(test.text), "-")
			if err == nil || err.Error() != test.want {
				t.Errorf("got %.300v, want %s", err, test.want)
			}
		})
	}
}

// TestArguments refuses arguments that name no file, and reads a file once that two name.
func TestArguments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	if err := os.WriteFile(file, []byte(object), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	set, err := manifest.Read(nil, dir, file, filepath.Join(dir, "empty", "..", "a.yaml"))
	if err != nil || len(set.Objects) != 1 {
		t.Errorf("got %v and %v, want one object", set, err)
	}
	for _, test := range []struct {
		want  string
		paths []string
	}{
		{"-f: is missing, expected a file, a directory, or - for stdin", nil},
		{"DIR/none.yaml: cannot be read: no such file or directory", []string{filepath.Join(dir, "none.yaml")}},
		{"DIR/empty: the directory has no .yaml, .yml or .json file", []string{filepath.Join(dir, "empty")}},
		{"https://x/a.yaml: is a URL, expected a file, a directory, or - for stdin", []string{"https://x/a.yaml"}},
	} {
		_, err := manifest.Read(nil, test.paths...)
		if got := strings.ReplaceAll(fmt.Sprint(err), dir, "DIR"); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

// TestDefaults returns controllers with the engine's defaults, and errors with their position.
func TestDefaults(t *testing.T) {
	t.Parallel()
	set, err := manifest.Read(strings.NewReader(`apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: web}
spec:
  parentResource: {apiVersion: a/v1, resource: webs}
  childResources: [{apiVersion: v1, resource: pods}]
  hooks: {sync: {grpc: {target: "a:1"}}}
`), "-")
	if err != nil {
		t.Fatal(err)
	}
	controllers, err := set.Controllers()
	if err != nil {
		t.Fatal(err)
	}
	c, _ := controllers[0].Declared.(*v1alpha1.CompositeController)
	if c == nil || c.Spec.ChildResources[0].UpdateStrategy.Method != v1alpha1.UpdateOnDelete {
		t.Errorf("got %+v, want the default of the update strategy", controllers[0].Declared)
	}
	var fault *manifest.Error
	if err := error(controllers[0].Errorf("spec.hooks", "is wrong")); !errors.As(err, &fault) || fault.Position.Line != 7 {
		t.Errorf("got %v, want an *Error of line 7", err)
	}
}

// TestNoRegularFile: a FIFO is refused rather than waited for, unless it is an open one.
func TestNoRegularFile(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "a.yaml")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := manifest.Read(nil, fifo)
	if want := fifo + ": is a FIFO, expected a file, a directory, or - for stdin"; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // it was only read
	if _, err := w.WriteString(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}`); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	set, err := manifest.Read(nil, fmt.Sprintf("/dev/fd/%d", r.Fd()))
	if err != nil || len(set.Objects) != 1 {
		t.Errorf("an open pipe has the objects %+v, error %v, want one object", set, err)
	}
}
