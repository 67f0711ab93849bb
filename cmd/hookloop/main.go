// Command hookloop runs controllers that ask hooks for their desired state, and helps to write
// them. "hookloop serve" runs the controllers of a cluster. "hookloop dev", "render", "validate"
// and "verify" help to develop a hook; "trace", "graph" and "top" show what a running engine does.
// Run "hookloop help" for the whole list.
//
// This package only turns flags into options, and errors into exit codes, which follow diff and
// grep:
//
//	0  success, or the user has stopped the command
//	1  the command has checked something and found faults; or it checks nothing and has failed
//	2  the command could not answer: a wrong flag, a file that cannot be read, an unreachable cluster
//
// With 1 or 2, a line on stderr says why.
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

// answers is the annotation of commands that answer a question and change nothing. If they cannot
// answer, they exit with exitNoAnswer.
const answers = "answers"

func main() { os.Exit(run(os.Args[1:])) }

// run executes the command line and returns the exit code.
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

// reason returns the line to print about an error. ctx is the command's context, which a signal
// ends.
func reason(ctx context.Context, err error) string {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return "interrupted by a signal before the end"
	}
	return oneLine(err)
}

// maxError limits the length of an error's line, in characters.
const maxError = 64_000

// oneLine makes an error fit on one line of a terminal. Its text may come from a cluster or a hook.
func oneLine(err error) string {
	return printable.Text(strings.ReplaceAll(err.Error(), "\n", "; "), maxError)
}

// exitCode chooses the exit code for an error.
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

// usageError says what is wrong with the command line.
type usageError struct{ text string }

// Error returns one line.
func (e *usageError) Error() string { return e.text }

// findingsError is returned by a command that has found faults and has printed them.
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

// explain improves an error about a flag: the result names the command, the flag and the values
// that it accepts.
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

// describe describes the values that a flag accepts.
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
