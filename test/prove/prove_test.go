package main

import (
	"slices"
	"testing"
)

// long are the examples that take as much time as all others together.
var long = []string{"snapshot-schedule", "stubs", "website"}

// TestExamples proves every example, as `make examples` does, on two control planes at a time.
func TestExamples(t *testing.T) {
	examples, err := find()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range long {
		if !slices.Contains(examples, name) {
			t.Errorf("there is no example %q; it is listed as a long one", name)
		}
	}
	isLong := func(name string) bool { return slices.Contains(long, name) }
	t.Run("long", func(t *testing.T) { proveAll(t, long) })
	t.Run("short", func(t *testing.T) { proveAll(t, slices.DeleteFunc(examples, isLong)) })
}

// proveAll proves examples one after the other, beside other parallel tests.
func proveAll(t *testing.T, examples []string) {
	t.Parallel()
	s, err := open(t.Context(), examples)
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range examples {
		t.Run(name, func(t *testing.T) {
			if err := s.prove(t.Context(), t.Output(), name); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestEveryExampleIsRendered holds the list of examples that are compared with hookloop render.
func TestEveryExampleIsRendered(t *testing.T) {
	examples, err := find()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range examples {
		if reason := notRendered[name]; (reason != "") == (len(samplesOf(name)) > 0) {
			t.Errorf("%s: %d samples and the reason %q, expected one of them", name, len(samplesOf(name)), reason)
		}
	}
	for _, c := range samples {
		if !slices.Contains(examples, c.example) {
			t.Errorf("there is no example %q", c.example)
		}
	}
}
