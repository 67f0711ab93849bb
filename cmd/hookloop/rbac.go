package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/cluster"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/rbac"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// rbacFlags holds the flags of "hookloop rbac".
type rbacFlags struct {
	files, related      []string
	output, account, as string
	kubeconfig, context string
	check               bool
	rbac.Options
}

// newRBAC makes the command "hookloop rbac", which prints the roles that controllers need.
func newRBAC() *cobra.Command {
	var f rbacFlags
	cmd := &cobra.Command{
		Use:   "rbac",
		Short: "Print the roles that controllers need, or those of their rights that a cluster does not grant",
		Long: `Print the roles that controllers need, or those of their rights that a cluster does not grant.

The files name the controllers, and the CRDs of their resources. The role has what the engine requests,
and no more: parents by their subresources and finalizers, children by their update strategy, inputs,
and the Secrets and ConfigMaps that hooks name. Its label adds it to the ClusterRole of an installed
Hookloop. With --engine the output also has the rights of the engine itself, and binds all roles: enough
for an engine that runs these controllers alone.

With --check it asks a cluster, and prints only the missing rights.

Exit code: 0, 1 if --check finds missing rights, 2 without an answer: a wrong flag or file, a cluster that is
not reachable.`,
		Example: `  hookloop rbac -f controller.yaml -f crd.yaml
  hookloop rbac -f deploy/ --engine | kubectl apply -f -
  hookloop rbac -f deploy/ --check --as hookloop-system/hookloop`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.parse(); err != nil {
				return err
			}
			return f.run(cmd)
		},
	}
	cmd.Flags().SortFlags = false
	f.bind(cmd.Flags())
	bindOutput(cmd, &f.output, "yaml", "json")
	completeFlag(cmd, "context", completeContext(&f.kubeconfig))
	return cmd
}

func (f *rbacFlags) bind(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.files, "filename", "f", nil,
		"file or directory with the controllers and their CRDs, or - for stdin; repeatable")
	flags.StringVar(&f.Name, "name", "hookloop-controllers", "name of the role, and the beginning of the other names")
	flags.BoolVar(&f.Engine, "engine", false, "add the rights of the engine itself, and bind all roles")
	flags.BoolVar(&f.Gateway, "gateway", false,
		"with --engine: add the rights of the gateway even if no hook of the files dials in")
	flags.BoolVar(&f.FromFiles, "from-files", false,
		"with --engine: the engine runs the controllers of files (hookloop serve -f)")
	flags.StringVar(&f.account, "service-account", "hookloop-system/hookloop",
		"NAMESPACE/NAME of the engine's ServiceAccount, for bindings")
	flags.StringArrayVar(&f.related, "related", nil,
		"resource that customize hooks name, such as pods or deployments.apps; repeatable")
	flags.BoolVar(&f.ServerSide, "server-side-apply", false, "the engine runs with --apply-strategy=server-side-apply")
	flags.BoolVar(&f.OwnerPermission, "owner-permission", false,
		"add PARENT/finalizers, for the admission plugin OwnerReferencesPermissionEnforcement (as in OpenShift)")
	flags.BoolVar(&f.check, "check", false, "ask the cluster, and print only the missing rights")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "with --check: kubeconfig file; empty follows kubectl's rules")
	flags.StringVar(&f.context, "context", "", "with --check: context of the kubeconfig; empty is its current one")
	flags.StringVar(&f.as, "as", "",
		"with --check: NAMESPACE/NAME of a ServiceAccount to ask about; empty asks about the kubeconfig's user")
}

// parse checks the flags and fills in what follows from them.
func (f *rbacFlags) parse() (err error) {
	if len(f.files) == 0 {
		return &usageError{"-f: is missing, expected a file or directory with controllers, or - for stdin"}
	}
	if f.as != "" && !f.check || f.context != "" && !f.check || f.kubeconfig != "" && !f.check {
		return &usageError{"--as, --kubeconfig and --context: got one of them without --check, expected both"}
	}
	f.Account, err = namespacedName("service-account", f.account)
	if err != nil {
		return err
	}
	for _, r := range f.related {
		if strings.ContainsAny(r, "/ ") || r == "" {
			return &usageError{fmt.Sprintf("--related: got %q, expected a resource such as pods or deployments.apps", r)}
		}
		f.Related = append(f.Related, schema.ParseGroupResource(r))
	}
	return nil
}

// namespacedName parses NAMESPACE/NAME.
func namespacedName(flag, text string) (types.NamespacedName, error) {
	namespace, name, found := strings.Cut(text, "/")
	if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, &usageError{fmt.Sprintf("--%s: got %q, expected NAMESPACE/NAME", flag, text)}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

func (f *rbacFlags) run(cmd *cobra.Command) error {
	set, err := manifest.Read(cmd.InOrStdin(), f.files...)
	if err != nil {
		return err
	}
	needed, err := rbac.New(cmd.Context(), set, f.Options)
	if err != nil {
		return err
	}
	if f.check {
		return f.missing(cmd, needed)
	}
	return f.write(cmd, needed)
}

// missing asks the cluster and prints the rights that it does not grant.
func (f *rbacFlags) missing(cmd *cobra.Command, needed *rbac.Access) error {
	var as types.NamespacedName
	if f.as != "" {
		var err error
		as, err = namespacedName("as", f.as)
		if err != nil {
			return err
		}
	}
	config, err := cluster.Config(f.kubeconfig, f.context)
	if err != nil {
		return err
	}
	if err := cluster.Reach(cmd.Context(), config); err != nil {
		return err
	}
	missing, err := needed.Missing(cmd.Context(), config, as)
	if err != nil {
		return err
	}
	if missing.Empty() {
		if f.output == "json" {
			return f.write(cmd, missing)
		}
		return nil
	}
	if err := f.write(cmd, missing); err != nil {
		return err
	}
	return findings("%d of %d rights are missing", missing.Verbs(), needed.Verbs())
}

func (f *rbacFlags) write(cmd *cobra.Command, a *rbac.Access) error {
	if f.output == "json" {
		for _, note := range a.Notes {
			if _, err := io.WriteString(cmd.ErrOrStderr(), "note: "+note+"\n"); err != nil {
				return err
			}
		}
		return writeJSON(cmd.OutOrStdout(), a.List())
	}
	return a.WriteYAML(cmd.OutOrStdout())
}
