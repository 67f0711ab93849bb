// Package verifystream checks that an SDK speaks the stream protocol (proto package
// hookloop.stream.v1), for "hookloop verify-stream". It plays the engine's side of recorded
// dialogues against a running hook and reports each difference.
//
//	dialogues/*.yaml ─→ player ─ link ─→ the hook under test
//	        results ←─ player ←─ link ←─┘
//
// Write the reference hook of docs/reference/checking-an-sdk.md with your SDK. Call [Dial] if it
// listens, or [Listen] if it dials in. Do not use the package to check what another hook answers.
//
// The package shares no code with the engine's and the SDKs' state machines: the digests in the
// dialogues are literal, and it computes those of responses itself.
package verifystream

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
)

// DefaultWait is used if Options.Wait is 0.
const DefaultWait = 10 * time.Second

// Options says which dialogues to play, and how long to wait.
type Options struct {
	// Only lists the names of dialogues to play; empty means all. Skip lists those to leave out.
	Only, Skip []string
	// Wait limits how long to wait for one message of the hook; 0 means [DefaultWait].
	Wait time.Duration
	// Transcript adds the messages of each failed dialogue to its result.
	Transcript bool
}

// OptionError says which option cannot be used: a wrong name, value or file.
type OptionError struct{ problem string }

func (e *OptionError) Error() string { return e.problem }

// Outcome says how a dialogue ended.
type Outcome string

// The outcomes.
const (
	Passed  Outcome = "ok"
	Failed  Outcome = "FAIL"
	Skipped Outcome = "skip"
)

// Result describes how one dialogue went.
type Result struct {
	Name    string  `json:"name"`
	Outcome Outcome `json:"outcome"`
	// Detail names the step that failed and what it expected, or says why the dialogue was skipped.
	Detail string `json:"detail,omitempty"`
}

// opener opens one stream to the hook.
type opener interface {
	open(ctx context.Context) (link, error)
	// dialsIn reports whether the hook opens the streams.
	dialsIn() bool
}

// run plays the dialogues one after the other, and writes a line for each.
func run(ctx context.Context, o Options, hook opener, out io.Writer) ([]Result, error) {
	dialogues, err := selected(o)
	if err != nil {
		return nil, err
	}
	if o.Wait == 0 {
		o.Wait = DefaultWait
	}
	var results []Result
	for _, d := range dialogues {
		if hook.dialsIn() && d.ListenOnly {
			continue
		}
		r := play(ctx, o, hook, d)
		if ctx.Err() != nil {
			return results, context.Cause(ctx)
		}
		results = append(results, r)
		if _, err := fmt.Fprintf(out, "%-4s %-22s %s\n", r.Outcome, r.Name, printable(r.Detail)); err != nil {
			return results, err
		}
	}
	return results, nil
}

// printable returns a text without characters that a terminal would obey, except newlines: they
// become spaces. Texts of hooks are part of results.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsGraphic(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// selected returns the dialogues of the options.
func selected(o Options) ([]*dialogue, error) {
	if o.Wait < 0 {
		return nil, &OptionError{fmt.Sprintf("wait: got %s, expected a time above 0", o.Wait)}
	}
	all, err := dialogues()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Concat(o.Only, o.Skip) {
		if !slices.ContainsFunc(all, func(d *dialogue) bool { return d.name == name }) {
			return nil, &OptionError{
				fmt.Sprintf("there is no dialogue %q; hookloop verify-stream --list prints the names", name),
			}
		}
	}
	return slices.DeleteFunc(all, func(d *dialogue) bool {
		return len(o.Only) > 0 && !slices.Contains(o.Only, d.name) || slices.Contains(o.Skip, d.name)
	}), nil
}

// Failures returns an error if a dialogue failed or none was played.
func Failures(results []Result) error {
	count := map[Outcome]int{}
	for _, r := range results {
		count[r.Outcome]++
	}
	switch {
	case count[Failed] > 0:
		return fmt.Errorf("%d of %d dialogues failed", count[Failed], len(results))
	case count[Passed] == 0:
		return fmt.Errorf("no dialogue was played to its end")
	}
	return nil
}

// Summary returns the counts of outcomes as one line.
func Summary(results []Result) string {
	count := map[Outcome]int{}
	for _, r := range results {
		count[r.Outcome]++
	}
	return fmt.Sprintf("%d dialogues: %d passed, %d failed, %d skipped",
		len(results), count[Passed], count[Failed], count[Skipped])
}

// List writes the names and titles of all dialogues.
func List(out io.Writer) error {
	all, err := dialogues()
	if err != nil {
		return err
	}
	for _, d := range all {
		if _, err := fmt.Fprintf(out, "%-22s %s\n", d.name, d.Title); err != nil {
			return err
		}
	}
	return nil
}
