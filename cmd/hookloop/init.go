package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/scaffold"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newInit makes the command "hookloop init", which writes the project for a new controller.
func newInit() *cobra.Command {
	o := scaffold.Options{}
	var output string
	cmd := &cobra.Command{
		Use:   "init NAME",
		Short: "Write the project of a new controller: types, hook, tests, manifests",
		Long: `Write the project of a new controller: types, hook, tests, manifests.

The project works at once: "make test" tests it, "make dev" runs it against the cluster of your
kubeconfig. It has the parent's types, of which it generates the CRD, the hook, a test, the controller,
the rights that it needs, and the files of an image and of a deployment.

Existing files are never replaced: if one of the project's files exists, nothing is written.`,
		Example: `  hookloop init shop --lang go --kind composite
  hookloop init web-shop --lang python --kind map --group shops.example.org --parent-kind Shop
  hookloop init ports --lang webhook --kind decorator --dir controllers/ports`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return &usageError{fmt.Sprintf("%s: got %d arguments, expected one NAME", cmd.CommandPath(), len(args))}
			}
			o.Name = strings.Join(args, "")
			o.Release = readBuild().version
			if o.SDK == "" {
				o.SDK = defaultSDK()
			}
			project, err := scaffold.Write(o)
			if err != nil {
				return initError(err)
			}
			return printProject(cmd.OutOrStdout(), project, output)
		},
	}
	cmd.Flags().SortFlags = false
	bindInit(cmd.Flags(), &o)
	bindOutput(cmd, &output, "text", "json")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	for flag, values := range map[string][]string{"lang": scaffold.Languages, "kind": scaffold.Kinds} {
		completeFlag(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

func bindInit(f *pflag.FlagSet, o *scaffold.Options) {
	f.StringVar(&o.Language, "lang", "", "language of the hook: "+strings.Join(scaffold.Languages, ", "))
	f.StringVar(&o.Kind, "kind", "composite", "kind of controller: "+strings.Join(scaffold.Kinds, ", "))
	f.StringVar(&o.Dir, "dir", "", "folder of the project; empty is ./NAME")
	f.StringVar(&o.Group, "group", "example.com", "API group of the parent")
	f.StringVar(&o.Version, "api-version", "v1", "version of the parent's API")
	f.StringVar(&o.ParentKind, "parent-kind", "", "kind of the parent; empty is NAME in camel case")
	f.StringVar(&o.Plural, "plural", "", "resource of the parent; empty is the plural of its kind")
	f.StringVar(&o.Module, "module", "", "path of the Go module; empty is GROUP/NAME")
	f.StringVar(&o.Image, "image", "", "name of the hook's image; empty is NAME:dev")
	f.StringVar(&o.SDK, "sdk", "",
		"folder of a checkout of Hookloop with the SDKs; empty is $HOOKLOOP_SDK, else the published SDKs of this release")
}

// defaultSDK returns the checkout whose SDKs a new project should use, or "" to use the published
// ones. Only a release has published SDKs, so any other build uses the SDKs of its own checkout.
func defaultSDK() string {
	if path := os.Getenv("HOOKLOOP_SDK"); path != "" || scaffold.IsRelease(readBuild().version) {
		return path
	}
	program, err := os.Executable()
	if err != nil {
		return ""
	}
	return scaffold.FindSDK(program)
}

// printProject prints the files of a new project and what to do next.
func printProject(out io.Writer, p *scaffold.Project, output string) error {
	if output == "json" {
		return writeJSON(out, p)
	}
	text := fmt.Sprintf("wrote %d files to %s:\n", len(p.Files), p.Dir)
	for _, file := range p.Files {
		text += "  " + file + "\n"
	}
	text += fmt.Sprintf("next:\n  cd %s\n%s", p.Dir, pathStep())
	text += fmt.Sprintf(`  make test                      # the hook's own tests
  make dev                       # runs it against the cluster of your kubeconfig
  kubectl apply -f sample.yaml   # in another terminal; then edit %s
`, p.Hook)
	_, err := io.WriteString(out, text)
	return err
}

// pathStep returns the step that puts this program on the PATH, because the project's Makefile
// calls it. It returns "" if the program is on the PATH already.
func pathStep() string {
	program, err := os.Executable()
	if err != nil {
		return ""
	}
	if found, err := exec.LookPath("hookloop"); err == nil && sameFile(found, program) {
		return ""
	}
	return fmt.Sprintf("  export PATH=\"%s:$PATH\"\n", filepath.Dir(program))
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// initError turns an error about an option into a usage error.
func initError(err error) error {
	var option *scaffold.OptionError
	if errors.As(err, &option) {
		return &usageError{option.Problem}
	}
	return err
}
