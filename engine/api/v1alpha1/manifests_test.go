package v1alpha1_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"golang.org/x/tools/txtar"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the verdicts in testdata; read the difference before you commit it")

// TestManifests runs manifests through the API server's validation and through Validate. Each
// archive under testdata holds pairs: <case>.yaml and <case>.verdict, one line for each error,
// "schema" or "validate" first; empty for a good manifest.
func TestManifests(t *testing.T) {
	schemas := schemas(t)
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives under testdata: %v", err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out := &txtar.Archive{Comment: archive.Comment}
		for _, f := range archive.Files {
			name, isManifest := strings.CutSuffix(f.Name, ".yaml")
			if !isManifest {
				continue
			}
			got := ""
			t.Run(name, func(t *testing.T) {
				got = verdict(t, schemas, f.Data)
				if want := find(archive, name+".verdict"); !*update {
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("verdict (-want +got):\n%s", diff)
					}
				}
			})
			out.Files = append(out.Files, f, txtar.File{Name: name + ".verdict", Data: []byte(got)})
		}
		if *update {
			if err := os.WriteFile(file, txtar.Format(out), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func find(archive *txtar.Archive, name string) string {
	for _, f := range archive.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return "no file " + name
}

func verdict(t *testing.T, schemas map[string]schema, manifest []byte) string {
	t.Helper()
	var out strings.Builder
	write := func(by string, errs field.ErrorList) {
		for _, err := range errs {
			fmt.Fprintf(&out, "%s: %s\n", by, err.Error())
		}
	}
	data, err := yaml.YAMLToJSON(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := utiljson.Unmarshal(data, &object); err != nil { // integers stay integers, as on the API server
		t.Fatal(err)
	}
	kind, _ := object["kind"].(string)
	write("validate", validate(t, kind, manifest))
	write("schema", schemas[kind].admit(t, object))
	return out.String()
}

// validate reads the manifest as one that was stored before the schema was there.
func validate(t *testing.T, kind string, manifest []byte) field.ErrorList {
	t.Helper()
	read := func(into any) {
		if err := yaml.Unmarshal(manifest, into); err != nil {
			t.Fatal(err)
		}
	}
	switch kind {
	case v1alpha1.CompositeControllerKind:
		c := &v1alpha1.CompositeController{}
		read(c)
		c.Default()
		return c.Validate()
	case v1alpha1.DecoratorControllerKind:
		d := &v1alpha1.DecoratorController{}
		read(d)
		d.Default()
		return d.Validate()
	case v1alpha1.MapControllerKind:
		m := &v1alpha1.MapController{}
		read(m)
		m.Default()
		return m.Validate()
	default:
		return nil
	}
}
