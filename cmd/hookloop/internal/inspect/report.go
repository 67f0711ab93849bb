// Package inspect draws the report of "hookloop trace": the tree of owned objects with their
// readiness, the last syncs, and the trace of the latest change. Fill in a [Report] and call Text.
package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/graph"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/readiness"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/terminal"
	"github.com/hookloop/hookloop/internal/jaeger"
	"github.com/hookloop/hookloop/internal/lastsync"
	"github.com/hookloop/hookloop/internal/printable"
)

// Report describes an object and what its controllers did for it.
type Report struct {
	// Graph has the object as its first node.
	*graph.Graph
	// Change is the latest change of the object.
	Change Change `json:"change"`
	// LastSyncs lists the last syncs that the engine knows, by controller. If they could not be read,
	// SyncsUnknown says why.
	LastSyncs    []lastsync.Sync `json:"lastSyncs"`
	SyncsUnknown string          `json:"lastSyncsUnknown,omitempty"`
	// Trace holds the spans of the change, if they were requested. If there are none, SpansUnknown
	// says why.
	Trace        *jaeger.Trace `json:"trace,omitempty"`
	SpansUnknown string        `json:"traceUnknown,omitempty"`
}

// Change identifies a change of an object.
type Change struct {
	Generation int64 `json:"generation"`
	// TraceID is the id of its trace, which exists if the engine exports traces and has sampled this
	// one. It is empty if it could not be derived, for the reason in Unknown.
	TraceID string `json:"traceID,omitempty"`
	Unknown string `json:"unknown,omitempty"`
	// URL is the trace's address in a user interface; empty without one.
	URL string `json:"url,omitempty"`
}

// Text draws a report at a time of day.
func (r *Report) Text(now time.Time, paint terminal.Paint) string {
	var b strings.Builder
	b.WriteString(r.Tree(graph.Style{
		Line: func(n graph.Node) string { return "  " + state(n, paint) },
		Below: func(n graph.Node, i int) []string {
			switch {
			case i == 0:
				return all(n)
			case n.State.Phase == readiness.Ready:
				return nil
			}
			return graph.NotTrue(n)
		},
	}))
	b.WriteString("\n")
	r.syncs(&b, now, paint)
	r.change(&b)
	if r.SpansUnknown != "" {
		fmt.Fprintf(&b, "spans      %s\n", clean(r.SpansUnknown))
	}
	if r.Trace != nil {
		b.WriteString("\n" + jaeger.Tree(r.Trace))
	}
	return b.String()
}

// maxText limits a text of the cluster, an engine or Jaeger, in characters.
const maxText = 2000

// clean makes a text safe for a terminal, because any Pod may have the engine's label.
func clean(text string) string { return printable.Text(text, maxText) }

// all returns all conditions of a node, one line each.
func all(n graph.Node) []string {
	var lines []string
	for _, c := range n.Conditions {
		lines = append(lines, graph.Describe(c))
	}
	return lines
}

// state describes the readiness of an object.
func state(n graph.Node, paint terminal.Paint) string {
	why := n.State.Why
	switch n.State.Phase {
	case readiness.Ready:
		return paint(terminal.Good, "ready")
	case readiness.NotReady:
		return paint(terminal.Waiting, "not ready") + ": " + why
	case readiness.Failed:
		return paint(terminal.Bad, "failed") + ": " + why
	case readiness.Deleting:
		return paint(terminal.Waiting, why)
	case readiness.Unknown:
		return paint(terminal.Waiting, "unknown") + ": " + why
	}
	return paint(terminal.Bad, "does not exist")
}

// syncs draws the last syncs.
func (r *Report) syncs(b *strings.Builder, now time.Time, paint terminal.Paint) {
	switch {
	case r.SyncsUnknown != "":
		fmt.Fprintf(b, "last sync  unknown: %s\n", clean(r.SyncsUnknown))
	case len(r.LastSyncs) == 0:
		fmt.Fprintf(b, "last sync  none: no controller has synced the object since the engine started, "+
			"or more than %d objects were synced since\n", lastsync.MaxParents)
	}
	for _, s := range r.LastSyncs {
		r.sync(b, s, now, paint)
	}
}

// sync draws one sync.
func (r *Report) sync(b *strings.Builder, s lastsync.Sync, now time.Time, paint terminal.Paint) {
	color := terminal.Good
	subject := s.Controller
	if s.Failed {
		color = terminal.Bad
	}
	if s.OneInput {
		subject += " for one input"
	}
	fmt.Fprintf(b, "last sync  %s: %s, %s ago (%s)\n", clean(subject), paint(color, clean(s.Result)),
		max(0, now.Sub(s.Time)).Round(time.Second), s.Time.Format(time.RFC3339))
	if s.Hookless {
		fmt.Fprintf(b, "           %s\n", printable.Count(s.Writes, "write"))
		r.took(b, s)
		return
	}
	line := fmt.Sprintf("hook %s in %s, %s, %s", milliseconds(s.HookTime), printable.Count(s.HookCalls, "call"),
		printable.Count(s.Writes, "write"), printable.Count(s.Children, "child", "children"))
	fmt.Fprintf(b, "           %s%s\n", line, children(s))
	r.took(b, s)
}

// took draws the times of a sync, its generation and its trace.
func (r *Report) took(b *strings.Builder, s lastsync.Sync) {
	fmt.Fprintf(b, "           took %s after %s in the queue, generation %d", milliseconds(s.Duration),
		milliseconds(s.Waited), s.Generation)
	if s.Generation != r.Change.Generation {
		fmt.Fprintf(b, " (the object is at %d)", r.Change.Generation)
	}
	if s.Attempt > 0 {
		fmt.Fprintf(b, ", retry %d", s.Attempt)
	}
	if s.TraceID != "" && s.TraceID != r.Change.TraceID {
		fmt.Fprintf(b, ", trace %s", clean(s.TraceID))
	}
	b.WriteString("\n")
}

// children describes the children of a sync that were not all written.
func children(s lastsync.Sync) string {
	parts := slices.DeleteFunc([]string{
		some(s.Unchanged, "unchanged"), some(s.Pending, "pending"), some(s.Held, "held back"), some(s.Waiting, "waiting"),
	}, func(part string) bool { return part == "" })
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func some(n int, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", n, what)
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// change draws the trace id of the latest change.
func (r *Report) change(b *strings.Builder) {
	c := r.Change
	switch {
	case c.Unknown != "":
		fmt.Fprintf(b, "change     generation %d, trace unknown: %s\n", c.Generation, clean(c.Unknown))
	case c.URL != "":
		fmt.Fprintf(b, "change     generation %d, trace %s\n", c.Generation, c.URL)
	default:
		fmt.Fprintf(b, "change     generation %d, trace %s\n", c.Generation, c.TraceID)
	}
}
