package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
)

// envHookloop names a hookloop program, such as that of a release, which the story then runs.
const envHookloop = "DEMO_HOOKLOOP"

// commit is the commit of the checkout, which the Makefile sets; empty without a git repository.
var commit string

// findHookloop returns the program that DEMO_HOOKLOOP names, or "" for that of `make demo`. It
// refuses a program of another commit, because the story would not show this checkout.
func findHookloop() (string, error) {
	program := os.Getenv(envHookloop)
	if program == "" {
		return "", nil
	}
	out, err := exec.Command(program, "version", "-o", "json").Output() //nolint:gosec // the user's own program
	if err != nil {
		return "", fmt.Errorf("%s: %s version: %w, expected the path of a hookloop program", envHookloop, program, err)
	}
	var build struct{ Version, Commit string }
	if err := json.Unmarshal(out, &build); err != nil {
		return "", fmt.Errorf("%s: %s version -o json: %w, expected a hookloop program", envHookloop, program, err)
	}
	if commit != "" && build.Commit != commit {
		return "", fmt.Errorf("%s: %s is hookloop %s of commit %s, expected commit %s of this checkout; check out its "+
			"version, or unset %s to build hookloop", envHookloop, program, build.Version, build.Commit, commit, envHookloop)
	}
	fmt.Printf("  hookloop: %s, version %s\n", program, build.Version)
	return program, nil
}
