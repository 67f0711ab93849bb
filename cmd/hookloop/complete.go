package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/cluster"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/spf13/cobra"
)

// completer offers values for an argument or a flag in the user's shell.
type completer = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective)

// completed turns a function that lists values into a completer. If the function fails, the
// completer offers no values, because a message would appear in the middle of the user's command
// line.
func completed(list func(ctx context.Context, args []string, toComplete string) ([]string, error)) completer {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		all, err := list(cmd.Context(), args, toComplete)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var offered []cobra.Completion
		for _, one := range all {
			if strings.HasPrefix(one, toComplete) {
				offered = append(offered, one)
			}
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeObject offers resources and objects of the cluster, for RESOURCE NAME and RESOURCE/NAME.
func completeObject(target *cluster.Target) completer {
	return completed(func(ctx context.Context, args []string, toComplete string) ([]string, error) {
		c, err := cluster.NewCompletion(*target)
		if err != nil {
			return nil, err
		}
		resource, _, slash := strings.Cut(toComplete, "/")
		switch {
		case len(args) == 1 && !strings.Contains(args[0], "/"):
			return c.Names(ctx, args[0])
		case len(args) > 0:
			return nil, nil
		case slash:
			names, err := c.Names(ctx, resource)
			for i := range names {
				names[i] = resource + "/" + names[i]
			}
			return names, err
		}
		return c.Resources()
	})
}

// completeNamespace offers the cluster's namespaces for a flag.
func completeNamespace(target *cluster.Target) completer {
	return completed(func(ctx context.Context, _ []string, _ string) ([]string, error) {
		c, err := cluster.NewCompletion(*target)
		if err != nil {
			return nil, err
		}
		return c.Namespaces(ctx)
	})
}

// completeContext offers the contexts of a kubeconfig for a flag.
func completeContext(kubeconfig *string) completer {
	return completed(func(context.Context, []string, string) ([]string, error) { return cluster.Contexts(*kubeconfig) })
}

// completeRunning offers the controllers that are declared in the cluster for a flag.
func completeRunning(kubeconfig, kubeContext *string) completer {
	return completed(func(ctx context.Context, _ []string, _ string) ([]string, error) {
		c, err := cluster.NewCompletion(cluster.Target{Kubeconfig: *kubeconfig, Context: *kubeContext})
		if err != nil {
			return nil, err
		}
		return c.Controllers(ctx)
	})
}

// completeDeclared offers the controllers that the given files declare for a flag.
func completeDeclared(files *[]string) completer {
	return completed(func(context.Context, []string, string) ([]string, error) {
		set, err := manifest.Read(strings.NewReader(""), *files...)
		if err != nil {
			return nil, err
		}
		controllers, err := set.Controllers()
		var names []string
		for _, c := range controllers {
			names = append(names, fmt.Sprintf("%s/%s", c.Kind().ControllerKind, c.Name()))
		}
		return names, err
	})
}

// completeFlag registers c for a flag. It panics if the command does not have the flag.
func completeFlag(cmd *cobra.Command, flag string, c completer) {
	if err := cmd.RegisterFlagCompletionFunc(flag, c); err != nil {
		panic(err) // the flag is unknown or has one; each start builds every command
	}
}
