package render

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/internal/printable"
	"github.com/pmezard/go-difflib/difflib"
	"sigs.k8s.io/yaml"
)

// The colours of lines by their first character.
var colours = map[byte]string{'+': "\x1b[32m", '-': "\x1b[31m", '!': "\x1b[31m", '@': "\x1b[36m"}

const (
	// diffContext is the number of equal lines around a change.
	diffContext = 3
	// maxMessage bounds the texts of hooks and of the API server, in characters.
	maxMessage = 8000
)

// WriteYAML writes the result as YAML.
func (r *Result) WriteYAML(w io.Writer) error {
	data, err := yaml.Marshal(r)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// WriteText writes the result for people: the writes in their order, a diff of each object, the
// parents' status, Events, and the faults.
func (r *Result) WriteText(w io.Writer, colour bool) error {
	var b bytes.Buffer
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	r.textWrites(&b)
	for _, c := range r.Changes {
		b.WriteString("\n")
		b.WriteString(c.diff())
	}
	r.textParents(&b)
	if len(r.Events) > 0 {
		b.WriteString("\nEvents\n")
		for _, e := range r.Events {
			fmt.Fprintf(&b, "  %s %s on %s: %s\n", e.Type, e.Reason, e.Object, printable.Text(e.Message, maxMessage))
		}
	}
	if len(r.Faults) > 0 {
		b.WriteString("\nFaults\n")
		for _, f := range r.Faults {
			fmt.Fprintf(&b, "! %s\n", printable.Text(f, maxMessage))
		}
	}
	if r.HookOutput != "" {
		fmt.Fprintf(&b, "\nOutput of the hook\n%s\n", indent(r.HookOutput))
	}
	_, err := w.Write(paint(b.Bytes(), colour))
	return err
}

func (r *Result) textWrites(b *bytes.Buffer) {
	if len(r.Writes) == 0 {
		b.WriteString("No writes.\n")
		return
	}
	b.WriteString("Writes\n")
	several := len(r.Parents) > 1
	for _, w := range r.Writes {
		fmt.Fprintf(b, "  round %-3d %-13s  %s", w.Round, w.Verb, w.Name)
		if several {
			fmt.Fprintf(b, "  for %s", w.Parent)
		}
		if w.Why != "" {
			fmt.Fprintf(b, "  (%s)", printable.Text(w.Why, maxMessage))
		}
		if w.Error != "" {
			fmt.Fprintf(b, "  failed: %s", printable.Text(w.Error, maxMessage))
		}
		b.WriteString("\n")
	}
}

func (r *Result) textParents(b *bytes.Buffer) {
	for _, p := range r.Parents {
		fmt.Fprintf(b, "\n%s  %s: %s\n", p.Name, p.Controller, p.Result)
		switch {
		case p.Gone:
			b.WriteString("  deleted\n")
		case len(p.Status) > 0:
			b.WriteString(indent(text(p.Status)))
		default:
			b.WriteString("  no status\n")
		}
	}
}

// diff returns the difference as lines: all lines of an object that is created or deleted, and a
// unified diff of one that is changed.
func (c *Change) diff() string {
	head := fmt.Sprintf("@ %s %s\n", c.Change, c.Name)
	switch {
	case c.Before == nil:
		return head + prefix("+ ", text(c.After))
	case c.After == nil:
		return head + prefix("- ", text(c.Before))
	}
	unified, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: lines(text(c.Before)), B: lines(text(c.After)), Context: diffContext,
	})
	if err != nil { // the writer is in memory
		return head + err.Error() + "\n"
	}
	var out strings.Builder
	out.WriteString(head)
	for line := range strings.Lines(unified) {
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "), line == "\n":
		case strings.HasPrefix(line, "@@"):
			out.WriteString("  ...\n")
		default:
			out.WriteString(line[:1] + " " + line[1:])
		}
	}
	return out.String()
}

// lines splits a text after its line ends.
func lines(text string) []string { return slices.Collect(strings.Lines(text)) }

// text returns a value as YAML.
func text(value any) string {
	data, err := yaml.Marshal(value)
	if err != nil { // the value was JSON
		return err.Error() + "\n"
	}
	return string(data)
}

func indent(text string) string { return prefix("  ", text) }

func prefix(with, text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(with + strings.TrimSuffix(line, "\n") + "\n")
	}
	return out.String()
}

// paint colours the lines of a diff and the faults.
func paint(text []byte, colour bool) []byte {
	if !colour {
		return text
	}
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		if c := colours[line[0]]; c != "" {
			line = append(append([]byte(c), bytes.TrimSuffix(line, []byte("\n"))...), "\x1b[0m\n"...)
		}
		out.Write(line)
	}
	return out.Bytes()
}
