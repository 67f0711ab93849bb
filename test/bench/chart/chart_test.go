package chart

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden file")

var sample = Chart{
	Title: "Costs <of> events", X: "parents", Y: "ms",
	Lines: []Line{
		{Name: "drift", Points: []Point{{1000, 1.2}, {5000, 1.25}, {10000, 1.3}}},
		{Name: "touch", Points: []Point{{1000, 1.15}, {10000, 1.29}}},
		{Name: "bound", Points: []Point{{0, 0}, {10000, 2}}, Dashed: true},
	},
}

func TestGolden(t *testing.T) {
	var out strings.Builder
	if err := sample.Write(&out); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/sample.svg"
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("picture (-want +got):\n%s", diff)
	}
	for decoder := xml.NewDecoder(strings.NewReader(out.String())); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("the picture is not XML: %v", err)
		}
	}
}

func TestChartsWithoutAPicture(t *testing.T) {
	line := func(p ...Point) Chart { return Chart{Title: "it", Lines: []Line{{Name: "one", Points: p}}} }
	for want, c := range map[string]Chart{
		"no point above 0":                        {Title: "it"},
		"no point above 0 on both axes":           line(Point{1, 0}),
		`line "one": point {-1 2}`:                line(Point{-1, 2}),
		`line "one": point {1 NaN}`:               line(Point{1, math.NaN()}),
		`line "one": point {+Inf 1}`:              line(Point{math.Inf(1), 1}),
		`chart "it": 7 lines; expected 6 at most`: {Title: "it", Lines: make([]Line, 7)},
	} {
		if err := c.Write(io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Write = %v, want an error with %q", err, want)
		}
	}
}

func TestStep(t *testing.T) {
	for end, want := range map[float64]float64{
		0.9: 0.2, 1: 0.2, 4: 0.5, 10: 2, 10000: 2000, 95: 20, 79: 10, 0.034: 0.005,
	} {
		if got := step(end); math.Abs(got-want) > 1e-9 {
			t.Errorf("step(%v) = %v, want %v", end, got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.25: "0.25", 12.5: "12.5", 999: "999", 1000: "1,000", 1234567: "1,234,567",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %s, want %s", v, got, want)
		}
	}
}
