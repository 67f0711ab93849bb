package dev

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookloop/hookloop/internal/printable"
)

// line holds one event of a session. With -o json, its fields are printed.
type line struct {
	Time time.Time `json:"time"`
	// Type is "sync", "hook" (what the hook has printed), "condition", "note" or "problem".
	Type string `json:"type"`
	// Text is the line of the types hook, note and problem.
	Text       string `json:"text,omitempty"`
	Controller string `json:"controller,omitempty"`
	*syncLine
	*conditionLine
}

// syncLine describes a sync.
type syncLine struct {
	Parent string `json:"parent"`
	// Causes describes why the sync ran. CauseCount is how many causes there were.
	Causes     []string    `json:"causes"`
	CauseCount int         `json:"causeCount"`
	Result     string      `json:"result"`
	Milli      float64     `json:"milliseconds"`
	HookMilli  float64     `json:"hookMilliseconds"`
	Ops        []string    `json:"operations,omitempty"`
	Writes     []writeLine `json:"writes,omitempty"`
	Problem    string      `json:"problem,omitempty"`
	Retry      bool        `json:"retry,omitempty"`
}

// writeLine describes one write of a sync.
type writeLine struct {
	Verb    string   `json:"verb"`
	Object  string   `json:"object"`
	Why     string   `json:"why,omitempty"`
	Changes []change `json:"changes,omitempty"`
	Problem string   `json:"problem,omitempty"`
}

// conditionLine describes a condition of a controller.
type conditionLine struct {
	Condition string `json:"condition"`
	Status    string `json:"status"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
}

// printer prints lines. It is safe for concurrent use.
type printer struct {
	json, color bool

	mu  sync.Mutex // guards out
	out io.Writer
}

func (p *printer) notef(format string, args ...any) {
	p.print(line{Type: "note", Text: fmt.Sprintf(format, args...)})
}

func (p *printer) problemf(format string, args ...any) {
	p.print(line{Type: "problem", Text: fmt.Sprintf(format, args...)})
}

func (p *printer) print(l line) {
	l.Time = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	text := ""
	if p.json {
		data, err := json.Marshal(l)
		if err != nil { // lines are texts and numbers
			panic(err)
		}
		text = string(data) + "\n"
	} else {
		text = p.text(l)
	}
	_, _ = io.WriteString(p.out, text) // a closed terminal ends the session by its signal
}

// The colours of a terminal.
const (
	red, green, yellow, cyan, dim = "31", "32", "33", "36", "2"
)

func (p *printer) paint(color, text string) string {
	if !p.color {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// text formats a line for people.
func (p *printer) text(l line) string {
	at := p.paint(dim, l.Time.Format("15:04:05"))
	switch {
	case l.syncLine != nil:
		return p.sync(at, l)
	case l.conditionLine != nil:
		c := l.conditionLine
		color := green
		if (c.Status == "True") != (c.Condition != "Intercepted" && c.Condition != "Fallback") {
			color = yellow
		}
		return fmt.Sprintf("%s %s %s: %s\n", at, l.Controller,
			p.paint(color, oneLine(c.Condition+"="+c.Status+" "+c.Reason)), oneLine(c.Message))
	case l.Type == "hook":
		return p.paint(cyan, "    hook │ ") + l.Text + "\n"
	case l.Type == "problem":
		return at + " " + p.paint(red, oneLine(l.Text)) + "\n"
	}
	return at + " " + oneLine(l.Text) + "\n"
}

// maxText limits a text of the cluster or the hook, in characters.
const maxText = 8000

// oneLine makes a text of the cluster or the hook fit on one line of a terminal.
func oneLine(text string) string { return printable.Text(text, maxText) }

// maxChanges bounds the changed fields of one write that are printed.
const maxChanges = 8

// sync formats a sync: one line with its cause, result and times, and one for each write.
func (p *printer) sync(at string, l line) string {
	var out strings.Builder
	s := l.syncLine
	color := dim
	switch {
	case s.Problem != "":
		color = red
	case len(s.Writes) > 0:
		color = green
	}
	fmt.Fprintf(&out, "%s %s %s %s", at, l.Controller, oneLine(s.Parent), p.paint(color, s.Result))
	if len(s.Ops) > 0 {
		fmt.Fprintf(&out, " in %s (%s %s)", milliseconds(s.Milli), strings.Join(s.Ops, ", "), milliseconds(s.HookMilli))
	}
	if len(s.Causes) > 0 {
		fmt.Fprintf(&out, ", because %s", oneLine(strings.Join(s.Causes, "; ")))
	}
	if more := s.CauseCount - len(s.Causes); more > 0 {
		fmt.Fprintf(&out, "; and %d more", more)
	}
	if s.Problem != "" && s.Retry {
		out.WriteString("; will be retried")
	}
	out.WriteString("\n")
	if s.Problem != "" && !slices.ContainsFunc(s.Writes, func(w writeLine) bool { return w.Problem != "" }) {
		fmt.Fprintf(&out, "  %s\n", p.paint(red, "! "+oneLine(s.Problem)))
	}
	for _, w := range s.Writes {
		p.write(&out, w)
	}
	return out.String()
}

// signs are the first characters of the lines of writes.
var signs = map[string][2]string{"create": {"+", green}, "delete": {"-", red}}

func (p *printer) write(out *strings.Builder, w writeLine) {
	sign, ok := signs[w.Verb]
	if !ok {
		sign = [2]string{"~", yellow}
	}
	text := sign[0] + " " + oneLine(w.Object)
	if !ok && !slices.Contains([]string{"update", "apply", statusVerb}, w.Verb) {
		text += " (" + w.Verb + ")"
	}
	fmt.Fprintf(out, "  %s", p.paint(sign[1], text))
	if w.Why != "" && len(w.Changes) == 0 {
		out.WriteString(": " + oneLine(w.Why))
	}
	out.WriteString("\n")
	if w.Problem != "" {
		fmt.Fprintf(out, "      %s\n", p.paint(red, "! "+oneLine(w.Problem)))
	}
	for i, c := range w.Changes {
		if i == maxChanges {
			fmt.Fprintf(out, "      and %d more fields\n", len(w.Changes)-i)
			break
		}
		fmt.Fprintf(out, "      %s\n", oneLine(fmt.Sprintf("%s: %s → %s", c.Path, c.Before, c.After)))
	}
}

func milliseconds(ms float64) string {
	if ms < 10 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}
