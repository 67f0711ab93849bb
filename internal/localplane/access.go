package localplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/internal/proc"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Admin returns a client configuration with all rights (group system:masters).
func (c *Cluster) Admin() *rest.Config { return rest.CopyConfig(c.admin) }

// Kubeconfig returns the path of the admin's kubeconfig file.
func (c *Cluster) Kubeconfig() string { return c.path("admin.kubeconfig") }

// User returns a client configuration for a user with this name and these groups. It authenticates
// by a client certificate.
func (c *Cluster) User(name string, groups ...string) (*rest.Config, error) {
	config := c.config()
	var err error
	config.CertData, config.KeyData, err = c.ca.issue(name, groups...)
	return config, err
}

// ServiceAccount returns a client configuration for a ServiceAccount, and creates the account if
// necessary. At first it has no rights.
func (c *Cluster) ServiceAccount(ctx context.Context, namespace, name string) (*rest.Config, error) {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return nil, err
	}
	accounts := client.CoreV1().ServiceAccounts(namespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("ServiceAccount %s/%s: %w", namespace, name, err)
	}
	token, err := accounts.CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	config := c.config()
	config.BearerToken = token.Status.Token
	return config, nil
}

// ServiceAccountKubeconfig writes a kubeconfig for a ServiceAccount into the cluster's folder and
// returns its path.
func (c *Cluster) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) (string, error) {
	config, err := c.ServiceAccount(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	file := c.path(namespace + "." + name + ".kubeconfig")
	return file, WriteKubeconfig(config, file)
}

// InstallKubectl writes a script named kubectl that runs the control plane's own kubectl. Add the
// folder that it returns to the PATH.
func (c *Cluster) InstallKubectl() (folder string, err error) {
	folder = c.path("bin")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return "", err
	}
	script := "#!/bin/sh\nexec"
	for _, word := range append([]string{c.assets.Kubectl.Path}, c.assets.Kubectl.Args...) {
		script += " " + shellQuoted(word)
	}
	script += " \"$@\"\n"
	return folder, proc.WriteProgram(filepath.Join(folder, "kubectl"), []byte(script))
}

// shellQuoted quotes a word for sh, so that no part of it is expanded.
func shellQuoted(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Kubectl runs kubectl as the admin and returns what it prints. Its cache is in the cluster's
// folder.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	if c.assets.Kubectl.IsZero() {
		return "", fmt.Errorf("kubectl %v: %s has no kubectl, and there is none on the PATH", args, c.assets.Source)
	}
	//nolint:gosec // the cluster's own program
	command := exec.CommandContext(ctx, c.assets.Kubectl.Path, append(slices.Clone(c.assets.Kubectl.Args), args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), "KUBECACHEDIR="+c.path("kubectl-cache"))
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %v: %w: %s", args, err, out)
	}
	return string(out), nil
}
