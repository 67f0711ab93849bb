package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
)

// TestMetricSeriesGoWithTheirController scrapes an engine before and after its controller is
// deleted.
func TestMetricSeriesGoWithTheirController(t *testing.T) {
	k := start(t)
	engine, labels := ownEngine(k)
	series := func() int {
		text, err := serve.Fetch(t.Context(), "http://"+engine.Metrics+"/metrics")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(text) {
			if strings.Contains(line, k.Name+`"`) && !strings.HasPrefix(line, "#") {
				n++
			}
		}
		return n
	}
	run(t, k, kit.Composite{Labels: labels})
	k.Apply(parent("web", page("page", "text: one")))
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	// The child exists before the sync that created it has ended, and before the sync's own series
	// exist.
	k.Eventually("the controller has the series of its queue, its syncs and its hook", func() error {
		if n := series(); n < 30 {
			return fmt.Errorf("there are %d, want 30 or more", n)
		}
		return nil
	})
	k.Delete(kit.CompositeController, k.Name)
	k.Eventually("the controller's series are gone", func() error {
		if n := series(); n > 0 {
			return fmt.Errorf("%d are left", n)
		}
		return nil
	})
}
