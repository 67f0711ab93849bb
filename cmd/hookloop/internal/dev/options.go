package dev

import (
	"fmt"
	"io"
	"time"
)

// Options configures [Run]. Out is required.
type Options struct {
	// Files lists files and folders with the controllers and the CRDs of their resources.
	Files []string
	// Controllers names the controllers to run (composite/web). If it is empty, all of them run; with
	// a Command there must be only one.
	Controllers []string
	// Command starts the hook. Without it the hook is called at its declared address.
	Command []string
	// Watch lists the folders with the hook's files. If it is empty, the current folder is watched.
	Watch []string
	// HookTimeout is how long the hook may take until it listens.
	HookTimeout time.Duration

	// Kubeconfig is a file; empty follows kubectl's rules. Context is empty for the current one.
	Kubeconfig, Context string
	// Local starts a control plane on this machine, which ends with the session.
	Local bool

	// Intercept names a controller that runs in the cluster (composite/web). If it is empty, the
	// controllers in Files run in this process.
	Intercept string
	// Gateway has the address and the credentials for Intercept.
	Gateway Gateway

	// Cleanup removes at the end what the session has made.
	Cleanup bool
	// JSON prints each line as a JSON object; Color colours the lines.
	JSON, Color bool
	// Verbose also prints the log of the engine.
	Verbose bool
	Version string
	Out     io.Writer
}

// UsageError says what is wrong with an option.
type UsageError struct{ Problem string }

// Error is the problem on one line.
func (e *UsageError) Error() string { return e.Problem }

func usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }
