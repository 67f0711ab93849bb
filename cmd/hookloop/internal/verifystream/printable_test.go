package verifystream

import "testing"

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"step 3: got ä\nstep 4": "step 3: got ä\nstep 4",
		"a\x1b[2Jb":             "a [2Jb",
		"a\u009b1mb\u202ec":     "a 1mb c",
		"a\xffb":                "a\uFFFDb",
	} {
		if got := printable(text); got != want {
			t.Errorf("printable(%q) = %q, want %q", text, got, want)
		}
	}
}
