package jaeger

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hookloop/hookloop/internal/printable"
)

// shown lists the attributes that Tree draws, in this order. It leaves out those that are the same
// in all spans of a trace (kind, namespace, UID).
var shown = []string{
	"hookloop.controller",
	"hookloop.parent.name",
	"hookloop.parent.generation",
	"hookloop.attempt",
	"hookloop.queue.wait_ms",
	"hookloop.causes",
	"hookloop.hook.op",
	"hookloop.hook.transport",
	"hookloop.hook.address",
	"rpc.method",
	"rpc.response.status_code",
	"rpc.grpc.status_code",
	"http.request.method",
	"http.response.status_code",
	"hookloop.hook.request_bytes",
	"hookloop.hook.response_bytes",
	"hookloop.children.observed",
	"hookloop.children.desired",
	"hookloop.children.unchanged",
	"hookloop.actions",
	"hookloop.writes",
	"hookloop.write.verb",
	"hookloop.write.resource",
	"hookloop.write.name",
	"hookloop.write.why",
	"hookloop.write.result",
	"hookloop.result",
	"error.type",
	"otel.status_description",
}

// shortened lists prefixes that are cut off the names of attributes. The first that matches is
// used.
var shortened = []string{"hookloop.write.", "hookloop.hook.", "hookloop.", "otel."}

// Tree draws a trace as text, with a line for each span. Children are below their parents, ordered
// by start time. The columns are service, start since the start of the trace, duration, and
// attributes. The mark "!" shows a failed span. Spans whose parents form a circle come last, with a
// note.
func Tree(t *Trace) string {
	var b strings.Builder
	head := fmt.Sprintf("trace %s: %d spans, %s, %s", t.ID, len(t.Spans), strings.Join(t.Services(), " and "),
		milliseconds(t.Duration()))
	b.WriteString(printable.Text(head, maxLine) + "\n\n")
	byParent := t.byParent()
	lines := append([]line{{"SPAN", "SERVICE", "BEGIN", "DURATION", "ATTRIBUTES"}}, t.lines(byParent, "", "")...)
	circles := t.circles(byParent)
	lines = append(lines, circles...)
	var width [4]int
	for _, l := range lines {
		for i := range width {
			width[i] = max(width[i], utf8.RuneCountInString(l[i]))
		}
	}
	for _, l := range lines {
		text := fmt.Sprintf("%-*s  %-*s  %*s  %*s  %s", width[0], l[0], width[1], l[1], width[2], l[2], width[3], l[3], l[4])
		b.WriteString(strings.TrimRight(printable.Text(text, maxLine), " ") + "\n")
	}
	if len(circles) > 0 {
		fmt.Fprintf(&b, "\n%d spans have no root: the ids of their parents form a circle, which begins at the mark %q\n",
			len(circles), circleMark)
	}
	return b.String()
}

// maxLine limits a line, in characters.
const maxLine = 2000

// line holds the five columns of a span.
type line [5]string

// lines draws the spans below a parent after indent, and removes them from byParent. So an id that
// appears twice in a trace is not taken for a circle.
func (t *Trace) lines(byParent map[string][]Span, parent, indent string) []line {
	var lines []line
	children := byParent[parent]
	delete(byParent, parent)
	for i, s := range children {
		knot := ""
		below := ""
		if parent != "" {
			knot = indent + "├─ "
			below = indent + "│  "
			if i == len(children)-1 {
				knot = indent + "└─ "
				below = indent + "   "
			}
		}
		lines = append(lines, t.line(s, knot))
		lines = append(lines, t.lines(byParent, s.ID, below)...)
	}
	return lines
}

// circleMark marks the first span of a circle: its parent is drawn below it.
const circleMark = "↻ "

// circles draws the spans that are left in byParent, which no root leads to. It draws the earliest
// span of each circle, in the order of the trace, as if it were a root.
func (t *Trace) circles(byParent map[string][]Span) []line {
	var lines []line
	for _, first := range t.Spans {
		siblings := byParent[first.Parent]
		i := slices.IndexFunc(siblings, func(s Span) bool { return s.ID == first.ID })
		if i < 0 || !leadsTo(byParent, first.ID, first.Parent) {
			continue // it was drawn, or it is below a circle
		}
		byParent[first.Parent] = slices.Delete(siblings, i, i+1)
		lines = append(lines, t.line(first, circleMark))
		lines = append(lines, t.lines(byParent, first.ID, "  ")...)
	}
	return lines
}

// leadsTo returns true if below is id, or lies below it among the spans in byParent.
func leadsTo(byParent map[string][]Span, id, below string) bool {
	seen := map[string]bool{}
	for next := []string{id}; len(next) > 0; next = next[1:] {
		if next[0] == below {
			return true
		}
		if seen[next[0]] {
			continue
		}
		seen[next[0]] = true
		for _, s := range byParent[next[0]] {
			next = append(next, s.ID)
		}
	}
	return false
}

func (t *Trace) line(s Span, knot string) line {
	name := knot + s.Operation
	if s.Failed() {
		name += " !"
	}
	return line{name, s.Service, "+" + milliseconds(s.Start.Sub(t.Start())), milliseconds(s.Duration), attributes(s)}
}

func attributes(s Span) string {
	var parts []string
	for _, key := range shown {
		value, ok := s.Tags[key]
		if !ok || value == "" {
			continue
		}
		parts = append(parts, short(key)+"="+readable(value))
	}
	return strings.Join(parts, " ")
}

// readable makes a value readable: it draws a list, which Jaeger encodes as JSON, as its items, and
// quotes values with spaces.
func readable(value string) string {
	var list []string
	if json.Unmarshal([]byte(value), &list) == nil {
		value = strings.Join(list, ", ")
	}
	if strings.ContainsAny(value, " \t\n\"") {
		return strconv.Quote(value)
	}
	return value
}

func short(key string) string {
	for _, prefix := range shortened {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			return rest
		}
	}
	return key
}

// milliseconds formats a duration with one digit after the point.
func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}
