// Command hookloop runs declared controllers, which ask hooks for their desired state. "hookloop
// serve" is the process, "hookloop verify" checks a hook, "hookloop version" prints its version.
//
// It turns flags into options and errors into exit codes, and holds no other logic. The exit
// code is 0 after an ordered stop, 1 after a failure, and 2 for a wrong flag or value; then one
// line on stderr names the flag and the expected value. It is tested by running the binary.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/hookloop/hookloop/server"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	exitFailure = 1
	exitUsage   = 2
)

func main() { os.Exit(run(os.Args[1:])) }

// run runs one command and returns its exit code.
func run(args []string) int {
	ctx, stop := server.Signals(context.Background())
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "hookloop: "+strings.ReplaceAll(err.Error(), "\n", "; "))
	var usage *usageError
	var flag *server.FlagError
	if errors.As(err, &usage) || errors.As(err, &flag) {
		return exitUsage
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
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		newDev(),
		newGraph(),
		newInit(),
		newRBAC(),
		newRender(),
		newReplay(),
		newServe(),
		newTop(),
		newTrace(),
		newValidate(),
		newVerify(),
		newVerifyStream(),
		newVersion(),
	)
	return root
}

// usageError is a wrong command line.
type usageError struct{ text string }

// Error returns one line.
func (e *usageError) Error() string { return e.text }

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
