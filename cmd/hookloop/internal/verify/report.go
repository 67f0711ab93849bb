package verify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/webhook"
)

const (
	// maxFindings limits the findings of a report.
	maxFindings = 200
	// maxGot bounds the text of a finding, in bytes.
	maxGot = 400
	// maxRequest bounds the request of a finding, in bytes.
	maxRequest = 64 << 10
	// maxRequestText bounds the request of a finding in the report for people, in bytes.
	maxRequestText = 4 << 10
)

// Finding says which rule an answer breaks.
type Finding struct {
	Rule
	// Operation is sync, finalize or customize. Over is the transport: gRPC, stream or webhook.
	Operation hook.Op `json:"operation"`
	Over      string  `json:"over"`
	// Question describes the question that shows the fault, and Request is that question as the JSON
	// of a webhook, version v2; it is absent if it is larger than 64 KiB.
	Question string          `json:"question"`
	Request  json.RawMessage `json:"request,omitempty"`
	// Shrunk is true if Request is the smallest question that we found to show the fault.
	Shrunk bool `json:"shrunk,omitempty"`
	// Got is what the hook returned.
	Got string `json:"got"`
	// More counts the other questions with the same fault.
	More int `json:"more,omitempty"`
}

// Report holds the results of all questions to a hook.
type Report struct {
	Kind hook.ControllerKind `json:"kind"`
	// Addresses are the addresses of the operations.
	Addresses map[hook.Op]string `json:"addresses"`
	// Questions counts the questions for each transport.
	Questions map[string]int `json:"questions"`
	Findings  []Finding      `json:"findings"`
	// Skipped names checks that were not possible, and why.
	Skipped []string `json:"skipped,omitempty"`
}

func newReport(s *subject, targets map[hook.Op]*target) *Report {
	r := &Report{
		Kind: s.kind.ControllerKind, Addresses: map[hook.Op]string{}, Questions: map[string]int{},
		Findings: []Finding{}, Skipped: s.skipped,
	}
	for op, t := range targets {
		r.Addresses[op] = t.address
	}
	return r
}

// Faults counts the findings that are faults.
func (r *Report) Faults() int {
	faults := 0
	for _, f := range r.Findings {
		if f.Level == Fault {
			faults++
		}
	}
	return faults
}

// Unreachable returns true if the hook has not answered any call.
func (r *Report) Unreachable() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.ID == ruleUnreachable })
}

// has reports whether there is a finding of a rule.
func (r *Report) has(id string, op hook.Op, over string) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool {
		return f.ID == id && f.Operation == op && f.Over == over
	})
}

// skip records a check that was not possible.
func (r *Report) skip(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(r.Skipped, text) {
		r.Skipped = append(r.Skipped, text)
	}
}

// add records a finding. A fault that several questions show is listed once for each operation and
// transport, with the first question.
func (r *Report) add(f Finding) {
	for i := range r.Findings {
		known := &r.Findings[i]
		if known.ID == f.ID && known.Operation == f.Operation && known.Over == f.Over {
			known.More++
			return
		}
	}
	if len(r.Findings) == maxFindings {
		return
	}
	f.Got = shortened(f.Got)
	r.Findings = append(r.Findings, f)
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(place(a.ID), place(b.ID)) })
}

// drop removes the findings of a rule over a transport.
func (r *Report) drop(id, over string) {
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return f.ID == id && f.Over == over })
}

func place(id string) int { return slices.IndexFunc(rules, func(r Rule) bool { return r.ID == id }) }

// shortened returns the beginning of a text as one line. Characters that a terminal would obey,
// such as escapes and marks of direction, become spaces.
func shortened(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > maxGot {
		text = strings.ToValidUTF8(text[:maxGot], "") + "…"
	}
	return printable(text)
}

// printable replaces the characters that a terminal would obey by spaces.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return ' '
	}, text)
}

// requestJSON returns a question as the JSON of a webhook.
func requestJSON(q *hook.Question) json.RawMessage {
	if data := webhook.Encode(q, "v2"); len(data) <= maxRequest {
		return data
	}
	return nil
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, f := range r.Findings {
		mark := "✗"
		if f.Level == Note {
			mark = "·"
		}
		fmt.Fprintf(&b, "%s %s\n", mark, f.ID)
		fmt.Fprintf(&b, "    question  %s over %s: %s\n", f.Operation, f.Over, f.Question)
		fmt.Fprintf(&b, "    expected  %s\n", f.Expected)
		fmt.Fprintf(&b, "    got       %s\n", f.Got)
		if f.Shrunk {
			fmt.Fprintf(&b, "    request   %s\n", f.requestText())
		}
		if f.More > 0 {
			fmt.Fprintf(&b, "    also      %s\n", count(f.More, "more question"))
		}
	}
	for _, skipped := range r.Skipped {
		fmt.Fprintf(&b, "- not checked: %s\n", skipped)
	}
	fmt.Fprintf(&b, "%s: %s, %s\n", r.asked(), count(r.Faults(), "fault"), count(len(r.Findings)-r.Faults(), "note"))
	_, err := io.WriteString(w, b.String())
	return err
}

// requestText returns the request on one line.
func (f *Finding) requestText() string {
	switch {
	case f.Request == nil:
		return fmt.Sprintf("larger than %d bytes", maxRequest)
	case len(f.Request) > maxRequestText:
		return fmt.Sprintf("%d bytes, in the report of -o json", len(f.Request))
	}
	return printable(string(f.Request))
}

// asked describes the questions: "composite hook at 127.0.0.1:9443, 31 questions over gRPC".
func (r *Report) asked() string {
	var over []string
	for _, name := range []string{overGRPC, overWebhook, overStream} {
		if n := r.Questions[name]; n > 0 {
			over = append(over, count(n, "question")+" over "+name)
		}
	}
	address := r.Addresses[r.Kind.Descriptor().Operations[0]]
	return fmt.Sprintf("%s hook at %s, %s", r.Kind, address, strings.Join(over, ", "))
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
