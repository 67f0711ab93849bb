// Command controlplane is a Kubernetes control plane in one program, with the subcommands etcd,
// kube-apiserver, kube-controller-manager and kubectl. It exists for tests and demonstrations:
// package test/cluster runs the three servers as three processes on loopback, so that each of them
// can be killed, paused and restarted.
//
// With the build tag noetcd it has no etcd: the control planes of older Kubernetes versions are
// built with it, and run with the etcd of the newest one.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// programs are the subcommands. etcd.go adds etcd, unless the build tag noetcd is set.
var programs = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kubectl":                 func() *cobra.Command { return kubectl.NewDefaultKubectlCommand() },
}

func main() {
	name := filepath.Base(os.Args[0])
	args := os.Args[1:]
	if _, ok := programs[name]; !ok && len(args) > 0 {
		name = args[0]
		args = args[1:]
	}
	program, ok := programs[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "usage: controlplane <%s> [flags]\n", strings.Join(names(), "|"))
		os.Exit(2)
	}
	os.Args = append([]string{name}, args...) // kubectl reads os.Args
	command := program()
	command.SetArgs(args)
	if name == "kubectl" {
		if err := cli.RunNoErrOutput(command); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(cli.Run(command))
}

func names() []string {
	var out []string
	for name := range programs {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}
