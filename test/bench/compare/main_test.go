package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestSmallRuns runs each program through a small comparison. Every program must end in the right
// state after every fault; what they may do meanwhile, the figures have, and only ours are checked.
func TestSmallRuns(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			r := small(t, p.name)
			c := r.Costs
			if r.Lines == 0 || c.Converge.Writes < 4*6 || c.Converge.CPU <= 0 || c.Converge.Syncs < 6 || c.RSS < 1<<20 {
				t.Errorf("result %+v, want lines, writes, CPU time, syncs and memory", r)
			}
			if c.Theme.Writes+c.Theme.Refused+c.Child.Writes+c.Child.Refused != 0 {
				t.Errorf("changes without an effect: %+v and %+v, want no writes", c.Theme, c.Child)
			}
			if len(r.Faults) != len(faults) {
				t.Errorf("%d findings, want one for each of the %d faults", len(r.Faults), len(faults))
			}
		})
	}
}

// small runs one program with a few Websites.
func small(t *testing.T, program string) result {
	t.Helper()
	o, err := parse([]string{
		"-programs", program, "-sites", "6", "-few", "3", "-objects", "40", "-lag", "1s", "-json",
	})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), o, &out, t.Logf); err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || len(r.Programs) != 1 {
		t.Fatalf("report %s: %v, want one program", out.String(), err)
	}
	return r.Programs[0]
}

func TestLinesOfCode(t *testing.T) {
	const text = `// Package p has a comment.
package p

import (
	"fmt" // an import
)

/* more
comments */
func f() string { // 1
	return fmt.Sprint(` + "`a\n\nb`" + `)
}
`
	if got := goLines([]byte(text)); got != 6 {
		t.Errorf("goLines = %d, want 6: the package clause, the function's three, and the text's two", got)
	}
	if got := yamlLines("# a comment\na: 1\n\n  # another\nb: 2\n"); got != 2 {
		t.Errorf("yamlLines = %d, want 2", got)
	}
}

func TestBadFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-programs none":  `"none"`,
		"-sites 0":        "-sites 0",
		"-few 2":          "-few 2",
		"something":       `"something"`,
		"-lag soon":       "soon",
		"-objects plenty": "plenty",
	} {
		if _, err := parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parse(%s) = %v, want an error with %s", args, err, want)
		}
	}
}

func TestTables(t *testing.T) {
	r := &report{Sites: 10}
	for _, title := range []string{"one", "two"} {
		result := result{Title: title, Lines: 50, Costs: costs{
			Converge: cost{Wall: 2 * time.Second, Writes: 40, Refused: 3}, ThemeTouches: 5, ChildTouches: 10, Objects: 5000,
		}}
		for range faults {
			result.Faults = append(result.Faults, finding{Text: "right"})
		}
		r.Programs = append(r.Programs, result)
	}
	r.Programs[1].YAML = 13
	r.Programs[1].Costs.HookRSS = 20e6
	var out bytes.Buffer
	if err := r.tables(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"|  | one | two |", "| lines of Go, and of YAML | 50 | 50 + 13 |", "| 2.00 s | 2.00 s |", "| 40; 3 | 40; 3 |",
		"memory with 5000 objects", "of which the hook 20 MB", "| " + faults[0].name + " | right | right |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the tables lack %q:\n%s", want, out.String())
		}
	}
}
