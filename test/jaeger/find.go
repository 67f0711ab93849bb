package jaeger

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Find returns the Jaeger program that DEMO_JAEGER names, or that is on the PATH, or "". The script
// build.sh has the same order.
func Find() (string, error) {
	if program := os.Getenv("DEMO_JAEGER"); program != "" {
		if _, err := os.Stat(program); err != nil {
			return "", fmt.Errorf("DEMO_JAEGER: %w, expected the path of a Jaeger 1 program (all-in-one)", err)
		}
		return program, nil
	}
	for _, name := range []string{"jaeger-all-in-one", "jaeger"} {
		if program, err := exec.LookPath(name); err == nil && version1(program) {
			return program, nil
		}
	}
	return "", nil
}

// version1 reports whether a program has the flags of Jaeger 1. Jaeger 2 has a configuration file.
func version1(program string) bool {
	out, err := exec.Command(program, "help").CombinedOutput()
	return err == nil && strings.Contains(string(out), "--collector.otlp.grpc.host-port")
}
