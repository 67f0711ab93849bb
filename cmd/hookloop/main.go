// Command hookloop runs declared controllers, which ask hooks for their desired state. "hookloop
// serve" is the process, "hookloop verify" checks a hook, "hookloop version" prints its version.
//
// It turns flags into options and errors into exit codes, and holds no other logic. It is tested by
// running the binary. The exit code is that of diff and grep:
//
//	0  fine, or an ordered stop
//	1  findings: what the command has checked has faults. Commands that check nothing failed.
//	2  no answer: a wrong flag, a file that cannot be read, a cluster that does not answer
//
// With 1 or 2, one line on stderr has the reason.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/hookloop/hookloop/internal/printable"
	"github.com/hookloop/hookloop/server"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	exitFindings = 1
	exitFailure  = 1
	exitNoAnswer = 2
)

// answers is the annotation of commands that answer a question, and change nothing. Without an
// answer, their exit code is exitNoAnswer.
const answers = "answers"

func main() { os.Exit(run(os.Args[1:])) }

// run runs one command and returns its exit code.
func run(args []string) int {
	ctx, stop := server.Signals(context.Background())
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "hookloop: "+reason(ctx, err))
	return exitCode(cmd, err)
}

// reason returns the line about an error of a command that has run with ctx, which a signal ends.
func reason(ctx context.Context, err error) string {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return "interrupted by a signal before the end"
	}
	return oneLine(err)
}

// maxError bounds the line of an error, in characters.
const maxError = 64_000

// oneLine returns the text of an error on one line. It may have texts of a cluster or of a hook.
func oneLine(err error) string {
	return printable.Text(strings.ReplaceAll(err.Error(), "\n", "; "), maxError)
}

// exitCode returns the exit code of a command after an error.
func exitCode(cmd *cobra.Command, err error) int {
	var found *findingsError
	var usage *usageError
	var flag *server.FlagError
	switch {
	case errors.As(err, &found):
		return exitFindings
	case errors.As(err, &usage), errors.As(err, &flag):
		return exitNoAnswer
	case cmd.Annotations[answers] != "":
		return exitNoAnswer
	}
	return exitFailure
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "hookloop",
		Short:         "Runs the reconcile loop; you write the hook",
		Args:          noArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return explain(cmd.CommandPath(), err) })
	root.AddCommand(newDev(), newInit(), newServe())
	for _, cmd := range []*cobra.Command{
		newGraph(),
		newRBAC(),
		newRender(),
		newReplay(),
		newTop(),
		newTrace(),
		newValidate(),
		newVerify(),
		newVerifyStream(),
		newVersion(),
	} {
		cmd.Annotations = map[string]string{answers: "yes"}
		root.AddCommand(cmd)
	}
	for _, cmd := range root.Commands() {
		if cmd.ValidArgsFunction == nil && cmd.Args != nil && cmd.Args(cmd, []string{"x"}) != nil {
			cmd.ValidArgsFunction = cobra.NoFileCompletions // it has no arguments
		}
	}
	return root
}

// usageError is a wrong command line.
type usageError struct{ text string }

// Error returns one line.
func (e *usageError) Error() string { return e.text }

// findingsError reports faults of what the command has checked. The faults have been printed.
type findingsError struct{ text string }

// Error returns one line.
func (e *findingsError) Error() string { return e.text }

func findings(format string, args ...any) error { return &findingsError{fmt.Sprintf(format, args...)} }

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return &usageError{
		fmt.Sprintf("%s: got argument %q, expected flags only; see %q", cmd.CommandPath(), args[0],
			cmd.CommandPath()+" --help"),
	}
}

// explain returns an error that names the wrong flag of a command and the expected value.
func explain(command string, err error) error {
	var value *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &value):
		return &usageError{
			fmt.Sprintf("--%s: got %q, expected %s", value.GetFlag().Name, value.GetValue(), describe(value.GetFlag())),
		}
	case errors.As(err, &missing):
		return &usageError{
			fmt.Sprintf("--%s: got no value, expected %s", missing.GetFlag().Name, describe(missing.GetFlag())),
		}
	case errors.As(err, &unknown):
		return &usageError{fmt.Sprintf("%v, expected one of those that %q lists", err, command+" --help")}
	default:
		return &usageError{err.Error()}
	}
}

// describe returns a description of the values that a flag accepts.
func describe(flag *pflag.Flag) string {
	if c, ok := flag.Value.(*choice); ok {
		return c.list()
	}
	switch flag.Value.Type() {
	case "int":
		return "a whole number"
	case "float32", "float64":
		return "a number"
	case "bool":
		return "true or false"
	case "duration":
		return "a duration such as 30s or 5m"
	default:
		return "a value"
	}
}
