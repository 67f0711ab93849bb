package jaeger

import (
	"strings"
	"testing"
)

// TestTreeOfInvalidTraces draws spans with parents that form a circle, which no tracer sends, and
// names with control characters.
func TestTreeOfInvalidTraces(t *testing.T) {
	for name, spans := range map[string][]Span{
		"the id of a span and of its child's child": {{ID: "a"}, {ID: "b", Parent: "a"}, {ID: "a", Parent: "b"}},
		"a span without an id":                      {{ID: ""}, {ID: "b"}},
		"control characters":                        {{ID: "a", Operation: "x\x1b[2J", Service: "y\x1b[2J"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := Tree(&Trace{ID: "1\x1b[2J", Spans: spans})
			if lines := strings.Count(text, "\n"); lines != len(spans)+3 || strings.Contains(text, "\x1b") {
				t.Errorf("got %d lines, expected a line for each of %d spans: %q", lines, len(spans), text)
			}
		})
	}
}
