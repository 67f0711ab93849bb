package hook

import "testing"

func TestFatal(t *testing.T) {
	for severity, fatal := range map[Severity]bool{"": false, Info: false, Warning: false, Fatal: true, "Wrning": true} {
		answer := Answer{Results: []Result{{Severity: Info, Reason: "First"}, {Severity: severity, Reason: "Second"}}}
		got := answer.Fatal()
		if (got != nil) != fatal || fatal && got.Reason != "Second" {
			t.Errorf("severity %q: fatal is %v, want %t", severity, got, fatal)
		}
	}
}

func TestIsWord(t *testing.T) {
	for text, word := range map[string]bool{"AllUp": true, "a": true, "A_b:c,d1": true, "": false, "a b": false,
		"1a": false, "a.": false, "Ä": false} {
		if IsWord(text) != word {
			t.Errorf("IsWord(%q) = %t", text, !word)
		}
	}
}
