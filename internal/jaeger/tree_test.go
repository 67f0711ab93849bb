package jaeger

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// TestTreeOfCircles draws the spans that no root leads to: two in a circle with one below it, and
// another circle.
func TestTreeOfCircles(t *testing.T) {
	text := Tree(&Trace{ID: "1", Spans: []Span{
		{ID: "r", Operation: "root", Service: "s"},
		{ID: "x", Parent: "b", Operation: "leaf", Service: "s"},
		{ID: "a", Parent: "b", Operation: "first", Service: "s"},
		{ID: "b", Parent: "a", Operation: "second", Service: "s"},
		{ID: "c", Parent: "d", Operation: "third", Service: "s"},
		{ID: "d", Parent: "c", Operation: "fourth", Service: "s"},
		{ID: "e", Parent: "r", Operation: "child", Service: "s"},
	}})
	const want = `trace 1: 7 spans, s, 0.0 ms

SPAN          SERVICE    BEGIN  DURATION  ATTRIBUTES
root          s        +0.0 ms    0.0 ms
└─ child      s        +0.0 ms    0.0 ms
↻ first       s        +0.0 ms    0.0 ms
  └─ second   s        +0.0 ms    0.0 ms
     └─ leaf  s        +0.0 ms    0.0 ms
↻ third       s        +0.0 ms    0.0 ms
  └─ fourth   s        +0.0 ms    0.0 ms

5 spans have no root: the ids of their parents form a circle, which begins at the mark "↻ "
`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}
