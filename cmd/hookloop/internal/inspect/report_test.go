package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/graph"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/terminal"
	"github.com/hookloop/hookloop/internal/lastsync"
)

// TestTextsOfOthers draws what a Pod with the label of an engine may answer.
func TestTextsOfOthers(t *testing.T) {
	const hostile = "a\x1b[2Jb\nc"
	r := &Report{
		Graph: &graph.Graph{Nodes: []graph.Node{{Kind: "Web", Name: "shop"}}}, SpansUnknown: hostile,
		Change:    Change{Unknown: hostile},
		LastSyncs: []lastsync.Sync{{Controller: hostile, OneInput: true, Result: hostile, TraceID: hostile}},
	}
	unknown := *r
	unknown.SyncsUnknown = hostile
	for _, r := range []*Report{r, &unknown} {
		text := r.Text(time.Now(), terminal.Plain)
		if strings.Contains(text, "\x1b") || strings.Contains(text, "b\nc") {
			t.Errorf("got %q, expected one line for each text and no control characters", text)
		}
	}
}
