package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/internal/localplane"
	"github.com/hookloop/hookloop/test/cluster"
	"k8s.io/client-go/tools/clientcmd"
)

// envKubeconfig names the kubeconfig of a cluster of the user, in which the story then plays.
const envKubeconfig = "DEMO_KUBECONFIG"

// mark is the label of the namespace and of the CRDs that the story makes in a cluster of the user.
const mark = "hookloop.dev/demo"

// place is a cluster of the user. The story makes a namespace and the CRDs of the examples, and
// removes them at its end. Hookloop's own CRDs are not installed: the engine reads the controllers
// from files.
type place struct {
	kubectl   localplane.Program
	namespace string
	// kubeconfig is a copy of the user's file with this namespace.
	kubeconfig string
	// created reports that the namespace was made; made are the CRDs that were.
	created bool
	made    []string
}

// openPlace makes the namespace and the CRDs. If it fails, the place knows which of them it has to
// remove.
func openPlace(ctx context.Context, file, dir string) (*place, error) {
	p := &place{kubeconfig: filepath.Join(dir, "kubeconfig"), namespace: fmt.Sprintf("hookloop-demo-%d", os.Getpid())}
	var err error
	p.kubectl, err = findKubectl()
	if err != nil {
		return p, err
	}
	host, err := p.copyKubeconfig(file)
	if err != nil {
		return p, fmt.Errorf("%s: %w, expected a kubeconfig file with a current context", envKubeconfig, err)
	}
	fmt.Printf("  cluster: %s; creating everything in the namespace %s, and deleting it at the end\n", host, p.namespace)
	if err := p.refuseCRDs(ctx); err != nil {
		return p, err
	}
	if _, err := p.run(ctx, "create", "namespace", p.namespace); err != nil {
		return p, fmt.Errorf("%s: %w", envKubeconfig, err)
	}
	p.created = true
	if _, err := p.run(ctx, "label", "namespace", p.namespace, mark+"=true"); err != nil {
		return p, err
	}
	for _, t := range tales {
		crd := filepath.Join(cluster.Root(), "examples", t.example, "crd.yaml")
		if _, err := p.run(ctx, "create", "-f", crd); err != nil {
			return p, fmt.Errorf("%s: %w", envKubeconfig, err)
		}
		p.made = append(p.made, t.kind)
		for _, args := range [][]string{
			{"label", "-f", crd, mark + "=true"}, {"wait", "--for=condition=Established", "--timeout=60s", "-f", crd},
		} {
			if _, err := p.run(ctx, args...); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// findKubectl returns the kubectl of the PATH, or that of the repository's control plane.
func findKubectl() (localplane.Program, error) {
	if path, err := exec.LookPath("kubectl"); err == nil {
		return localplane.Program{Path: path}, nil
	}
	if _, err := os.Stat(cluster.Built()); err == nil {
		return localplane.One(cluster.Built()).Kubectl, nil
	}
	return localplane.Program{}, errors.New("kubectl is not on the PATH; install it")
}

// copyKubeconfig writes the current context of a kubeconfig file with the namespace of the story.
// It returns the address of the cluster.
func (p *place) copyKubeconfig(file string) (host string, err error) {
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return "", err
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return "", err
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil {
		return "", fmt.Errorf("%s has no context %q", file, config.CurrentContext)
	}
	current.Namespace = p.namespace
	if c := config.Clusters[current.Cluster]; c != nil {
		host = fmt.Sprintf("%q at %s", config.CurrentContext, c.Server)
	}
	return host, clientcmd.WriteToFile(*config, p.kubeconfig)
}

// refuseCRDs refuses a cluster that has a CRD of the examples already. One that a killed story has
// left is removed.
func (p *place) refuseCRDs(ctx context.Context) error {
	for _, t := range tales {
		out, err := p.run(ctx, "get", "crd", t.kind, "--ignore-not-found", "--show-labels", "--no-headers")
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", envKubeconfig, err)
		case strings.Contains(out, mark+"=true"):
			if _, err := p.run(ctx, "delete", "crd", t.kind, "--timeout=60s"); err != nil {
				return err
			}
		case strings.TrimSpace(out) != "":
			return fmt.Errorf("%s: the cluster has the CustomResourceDefinition %s, which the story would remove; "+
				"choose another cluster, or delete it", envKubeconfig, t.kind)
		}
	}
	return nil
}

// run runs kubectl, and returns its output.
func (p *place) run(ctx context.Context, args ...string) (string, error) {
	//nolint:gosec // the user's own kubectl
	command := exec.CommandContext(ctx, p.kubectl.Path, append(slices.Clone(p.kubectl.Args), args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig)
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// removeParents deletes the objects of the story, while the engine still runs.
func (p *place) removeParents(ctx context.Context) error {
	var errs []error
	for _, kind := range p.made {
		_, err := p.run(ctx, "delete", kind, "--all", "--timeout=60s")
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// remove deletes the CRDs and the namespace, and waits until they are gone.
func (p *place) remove(ctx context.Context) error {
	var errs []error
	for _, kind := range p.made {
		_, err := p.run(ctx, "delete", "crd", kind, "--timeout=60s")
		errs = append(errs, err)
	}
	if p.created {
		_, err := p.run(ctx, "delete", "namespace", p.namespace, "--ignore-not-found", "--timeout=120s")
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if err == nil && p.created {
		all := append([]string{"namespace " + p.namespace}, p.made...)
		fmt.Printf("\nRemoved from the cluster: %s.\n", strings.Join(all, ", "))
	}
	return err
}
