package jaeger

import (
	"slices"
	"strings"
	"time"
)

// Trace holds a trace as Jaeger returns it.
type Trace struct {
	// ID is 32 hexadecimal digits.
	ID string `json:"id"`
	// Spans are ordered by their start.
	Spans []Span `json:"spans"`
}

// Span holds one span of a trace.
type Span struct {
	// ID has 16 hexadecimal digits. Parent is the id of the parent span. It is empty for a root;
	// otherwise the parent may still be missing in the trace.
	ID        string `json:"id"`
	Parent    string `json:"parent,omitempty"`
	Operation string `json:"operation"`
	Service   string `json:"service"`
	// Tags holds the span's attributes, and those that Jaeger derives from kind and status (span.kind,
	// otel.status_code, error).
	Tags     map[string]string `json:"tags,omitempty"`
	Links    []Link            `json:"links,omitempty"`
	Start    time.Time         `json:"start"`
	Duration time.Duration     `json:"duration"`
}

// Link refers to a span, of any trace, that is not the span's parent.
type Link struct {
	TraceID string `json:"traceID"`
	SpanID  string `json:"spanID"`
}

// End returns when the span ended.
func (s Span) End() time.Time { return s.Start.Add(s.Duration) }

// Failed returns true if the span's status is an error.
func (s Span) Failed() bool { return s.Tags["otel.status_code"] == "ERROR" }

// Start returns when the first span began.
func (t *Trace) Start() time.Time {
	if len(t.Spans) == 0 {
		return time.Time{}
	}
	return t.Spans[0].Start
}

// Duration returns how long it took from the start of the first span to the end of the last.
func (t *Trace) Duration() time.Duration {
	end := t.Start()
	for _, s := range t.Spans {
		if s.End().After(end) {
			end = s.End()
		}
	}
	return end.Sub(t.Start())
}

// Services returns the names of the services that took part, sorted.
func (t *Trace) Services() []string {
	names := make([]string, 0, len(t.Spans))
	for _, s := range t.Spans {
		names = append(names, s.Service)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Named returns the spans with this operation, with or without a target: "sync" finds "sync
// composite/website".
func (t *Trace) Named(operation string) []Span {
	var named []Span
	for _, s := range t.Spans {
		if s.Is(operation) {
			named = append(named, s)
		}
	}
	return named
}

// Is returns true if the span has this operation, with or without a target.
func (s Span) Is(operation string) bool {
	verb, _, _ := strings.Cut(s.Operation, " ")
	return s.Operation == operation || verb == operation
}

// IsWrite returns true if the span is a request by which the engine writes.
func (s Span) IsWrite() bool { return s.Tags["hookloop.write.verb"] != "" }

// Writes returns the spans of requests that write.
func (t *Trace) Writes() []Span {
	return slices.DeleteFunc(slices.Clone(t.Spans), func(s Span) bool { return !s.IsWrite() })
}

// Span returns the span with this id.
func (t *Trace) Span(id string) (Span, bool) {
	i := slices.IndexFunc(t.Spans, func(s Span) bool { return s.ID == id })
	if i < 0 {
		return Span{}, false
	}
	return t.Spans[i], true
}

// Children returns the spans with this parent. Pass "" for the roots: spans whose parent is not in
// the trace.
func (t *Trace) Children(id string) []Span { return t.byParent()[id] }

// byParent groups the spans by the id of their parent, which is "" for roots.
func (t *Trace) byParent() map[string][]Span {
	known := make(map[string]bool, len(t.Spans))
	for _, s := range t.Spans {
		known[s.ID] = true
	}
	children := map[string][]Span{}
	for _, s := range t.Spans {
		parent := s.Parent
		if !known[parent] || parent == s.ID {
			parent = ""
		}
		children[parent] = append(children[parent], s)
	}
	return children
}
