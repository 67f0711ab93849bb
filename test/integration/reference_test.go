package integration

import (
	"path/filepath"
	"testing"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
)

// TestReferenceExamples applies the examples of docs/reference/api by a dry run with strict field
// validation.
func TestReferenceExamples(t *testing.T) {
	parallel(t)
	files, err := filepath.Glob(filepath.Join(cluster.Root(), "docs", "reference", "api", "*.yaml"))
	if err != nil || len(files) != 3 {
		t.Fatalf("%d examples, %v; expected one of each kind", len(files), err)
	}
	k := kit.New(t)
	for _, file := range files {
		_, err := k.Cluster.Kubectl(t.Context(),
			"apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", file)
		if err != nil {
			t.Error(err)
		}
	}
}
