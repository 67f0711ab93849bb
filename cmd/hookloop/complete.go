package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/cluster"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/spf13/cobra"
)

// completer completes an argument or the value of a flag.
type completer = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective)

// completed is a completer of what a function returns. A failure offers nothing: a message would be
// in the middle of the user's line.
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

// completeObject completes RESOURCE NAME and RESOURCE/NAME from the cluster.
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

// completeNamespace completes a flag with a namespace of the cluster.
func completeNamespace(target *cluster.Target) completer {
	return completed(func(ctx context.Context, _ []string, _ string) ([]string, error) {
		c, err := cluster.NewCompletion(*target)
		if err != nil {
			return nil, err
		}
		return c.Namespaces(ctx)
	})
}

// completeContext completes a flag with a context of a kubeconfig.
func completeContext(kubeconfig *string) completer {
	return completed(func(context.Context, []string, string) ([]string, error) { return cluster.Contexts(*kubeconfig) })
}

// completeRunning completes a flag with a controller of the cluster.
func completeRunning(kubeconfig, kubeContext *string) completer {
	return completed(func(ctx context.Context, _ []string, _ string) ([]string, error) {
		c, err := cluster.NewCompletion(cluster.Target{Kubeconfig: *kubeconfig, Context: *kubeContext})
		if err != nil {
			return nil, err
		}
		return c.Controllers(ctx)
	})
}

// completeDeclared completes a flag with a controller of the files.
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

// completeFlag registers the completer of a flag, which must exist.
func completeFlag(cmd *cobra.Command, flag string, c completer) {
	if err := cmd.RegisterFlagCompletionFunc(flag, c); err != nil {
		panic(err) // the flag is unknown or has one; each start builds every command
	}
}
