package main

import "testing"

// TestExamples proves every example, as `make examples` does.
func TestExamples(t *testing.T) {
	examples, err := find()
	if err != nil {
		t.Fatal(err)
	}
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
			if err := s.prove(t.Context(), name); err != nil {
				t.Error(err)
			}
		})
	}
}
