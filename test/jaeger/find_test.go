package jaeger_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/test/jaeger"
)

// TestFind prefers the program that the user names to that of the PATH, and passes over a Jaeger 2.
func TestFind(t *testing.T) {
	program := func(help string) string {
		file := filepath.Join(t.TempDir(), "jaeger")
		if err := os.WriteFile(file, []byte("#!/bin/sh\necho \""+help+"\"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return file
	}
	one := program("--collector.otlp.grpc.host-port string")
	two := program("--config")
	for name, c := range map[string]struct{ named, path, want, err string }{
		"the user's":        {named: two, path: one, want: two},
		"that of the PATH":  {path: one, want: one},
		"a Jaeger 2":        {path: two},
		"a missing program": {named: one + ".missing", path: one, err: "DEMO_JAEGER: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DEMO_JAEGER", c.named)
			t.Setenv("PATH", filepath.Dir(c.path)+":/usr/bin:/bin")
			got, err := jaeger.Find()
			if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("Find = %q, %v, want %q and the error %q", got, err, c.want, c.err)
			}
		})
	}
}
