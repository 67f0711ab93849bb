package terminal

import (
	"bytes"
	"strings"
	"testing"
)

// TestPlainOutput has no control sequences, and an empty line between two texts.
func TestPlainOutput(t *testing.T) {
	var out bytes.Buffer
	s := NewScreen(&out)
	for _, text := range []string{"one\n", PaintOn(&out)(Bad, "two") + "\n"} {
		if err := s.Show(text); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); got != "one\n\ntwo\n" {
		t.Errorf("got %q", got)
	}
}

// TestTerminal draws in place, and no more lines than there is room for.
func TestTerminal(t *testing.T) {
	var out bytes.Buffer
	s := &Screen{out: &out, live: true, height: func() int { return 4 }}
	for _, text := range []string{"a\nb\nc\nd\n", "e\n"} {
		if err := s.Show(text); err != nil {
			t.Fatal(err)
		}
	}
	first, second, _ := strings.Cut(out.String(), wrap)
	if want := clearAll + noWrap + home + "a\x1b[K\nb\x1b[K\n… 2 more lines\x1b[K\n" + clearBelow; first != want {
		t.Errorf("first text: %q, want %q", first, want)
	}
	if want := noWrap + home + "e\x1b[K\n" + clearBelow + wrap; second != want {
		t.Errorf("second text: %q, want %q", second, want)
	}
}
