package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindHookloop(t *testing.T) {
	program := func(output string) string {
		file := filepath.Join(t.TempDir(), "hookloop")
		if err := os.WriteFile(file, []byte("#!/bin/sh\necho '"+output+"'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return file
	}
	one := program(`{"version":"v1.2.3","commit":"abc"}`)
	for name, c := range map[string]struct{ named, commit, want, err string }{
		"none is named":          {},
		"this commit":            {named: one, commit: "abc", want: one},
		"a checkout without git": {named: one, want: one},
		"another commit":         {named: one, commit: "def", err: "hookloop v1.2.3 of commit abc, expected commit def"},
		"another program":        {named: program("text"), commit: "abc", err: "expected a hookloop program"},
		"a missing program":      {named: one + ".missing", err: "expected the path of a hookloop program"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(envHookloop, c.named)
			defer func(before string) { commit = before }(commit)
			commit = c.commit
			got, err := findHookloop()
			if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %q, %v; want %q, error %q", got, err, c.want, c.err)
			}
		})
	}
}
