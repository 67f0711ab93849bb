package validate_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/validate"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func check(t *testing.T, files ...string) *validate.Report {
	t.Helper()
	set, err := manifest.Read(nil, files...)
	if err != nil {
		t.Fatal(err)
	}
	report, err := validate.Check(t.Context(), set, validate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestFaults compares the findings about files with golden files: each fault at its place.
func TestFaults(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %v and %v, expected files", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			report := check(t, file)
			var got bytes.Buffer
			if err := report.WriteText(&got); err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			asJSON, err := json.Marshal(report)
			if err != nil {
				t.Fatal(err)
			}
			var decoded validate.Report
			if err := json.Unmarshal(asJSON, &decoded); err != nil || !cmp.Equal(&decoded, report) {
				t.Errorf("the JSON is another report (%v): %s", err, asJSON)
			}
		})
	}
}

// TestExamples finds no error in manifests of examples, one of each kind.
func TestExamples(t *testing.T) {
	t.Parallel()
	var files []string
	for _, name := range []string{"tenant", "snapshot-schedule", "service-per-pod"} {
		for _, pattern := range []string{"controller.yaml", "crd*.yaml"} {
			found, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "examples", name, pattern))
			if err != nil {
				t.Fatal(err)
			}
			if len(found) == 0 && pattern == "controller.yaml" {
				t.Errorf("the example %s has no %s", name, pattern)
			}
			files = append(files, found...)
		}
	}
	for _, f := range check(t, files...).Findings {
		if f.Severity == validate.Error {
			t.Errorf("%s", f)
		}
	}
}
