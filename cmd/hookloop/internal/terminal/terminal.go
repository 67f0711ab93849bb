// Package terminal writes text for people: with colours and in place on a terminal, as plain text
// elsewhere.
//
// Use [PaintOn] to colour texts for a writer, and a [Screen] for a text that changes. It respects
// NO_COLOR and TERM. A Screen is not safe for concurrent use.
package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Color says what a colour means; the terminal chooses the tone.
type Color string

// These are the colours.
const (
	Good    Color = "\x1b[32m" // green
	Waiting Color = "\x1b[33m" // yellow
	Bad     Color = "\x1b[31m" // red
	Strong  Color = "\x1b[1m"  // bold

	reset = "\x1b[0m"
)

// Paint colours a text, or returns it as it is.
type Paint func(Color, string) string

// Plain returns the text as it is.
func Plain(_ Color, text string) string { return text }

// Live returns true if out is a terminal on which we can draw.
func Live(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// Colored returns true if text for w should have colours: on a terminal, unless NO_COLOR is set.
func Colored(w io.Writer) bool { return Live(w) && os.Getenv("NO_COLOR") == "" }

// PaintOn returns the Paint to use for w. It is [Plain] unless w is [Colored].
func PaintOn(w io.Writer) Paint {
	if !Colored(w) {
		return Plain
	}
	return func(c Color, text string) string { return string(c) + text + reset }
}

// Screen shows one text after the other. On a terminal, each text replaces the one before.
type Screen struct {
	out    io.Writer
	live   bool
	height func() int
	drawn  bool
}

// NewScreen returns the screen of a writer.
func NewScreen(out io.Writer) *Screen {
	return &Screen{out: out, live: Live(out), height: func() int {
		if f, ok := out.(*os.File); ok {
			if _, height, err := term.GetSize(int(f.Fd())); err == nil {
				return height
			}
		}
		return 24
	}}
}

// These sequences control a terminal.
const (
	clearAll   = "\x1b[2J"
	home       = "\x1b[H"
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
	noWrap     = "\x1b[?7l"
	wrap       = "\x1b[?7h"
)

// Show shows a text. On a terminal it shows as many lines as fit.
func (s *Screen) Show(text string) error {
	before := s.drawn
	s.drawn = true
	if !s.live {
		if before {
			text = "\n" + text
		}
		_, err := io.WriteString(s.out, text)
		return err
	}
	var b strings.Builder
	if !before {
		b.WriteString(clearAll)
	}
	b.WriteString(noWrap + home)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if room := max(1, s.height()-2); len(lines) > room {
		lines = append(lines[:room:room], fmt.Sprintf("… %d more lines", len(lines)-room))
	}
	for _, line := range lines {
		b.WriteString(line + clearLine + "\n")
	}
	b.WriteString(clearBelow + wrap)
	_, err := io.WriteString(s.out, b.String())
	return err
}
