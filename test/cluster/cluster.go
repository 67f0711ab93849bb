// Package cluster runs a real Kubernetes control plane on loopback: etcd, kube-apiserver and
// kube-controller-manager as three processes, with TLS, client certificates, RBAC and an audit log
// of all writes. Without a kubelet, Pods stay Pending.
//
// It is for tests and demonstrations. The data is deleted at the end. `make controlplane` builds
// the program. A Cluster is safe for concurrent use. The tests beside the code run on it.
package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/hookloop/hookloop/test/proc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Options configure a Cluster. The zero value works.
type Options struct {
	// Dir is the folder of certificates, data and logs; empty creates a temporary folder, which Stop
	// removes. The data of an earlier cluster in the same folder is deleted. If another cluster still
	// runs in the folder, New returns an error.
	Dir string
	// Program is the control plane program; empty uses HOOKLOOP_CONTROLPLANE, or else
	// .cache/bin/controlplane of the repository.
	Program string
	// CRDs are files or folders that are applied before kube-controller-manager starts. Its garbage
	// collector discovers resources every 30 seconds only, so that it deletes the dependents of later
	// CRDs' objects that much later.
	CRDs []string
}

// Cluster is a running control plane.
type Cluster struct {
	Etcd, APIServer, ControllerManager *proc.Process

	program string
	crds    []string
	dir     string
	remove  bool
	lock    *os.File // of dir
	ports   ports
	ca      *authority
	admin   *rest.Config
}

type ports struct{ etcd, peer, api, manager int }

// startTimeout bounds a start. A start with warm caches takes a few seconds.
const startTimeout = 60 * time.Second

// New starts a control plane and returns when it is ready.
func New(ctx context.Context, o Options) (*Cluster, error) {
	c := &Cluster{program: o.Program, dir: o.Dir, crds: o.CRDs}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	steps := []func(context.Context) error{
		c.findProgram,
		c.makeDir,
		c.choosePorts,
		c.makeCredentials,
		c.startEtcd,
		c.startAPIServer,
		c.applyCRDs,
		c.startManager,
		c.awaitDefaults,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("control plane: %w", err), c.Stop())
		}
	}
	return c, nil
}

// Program returns the path of the control plane program that the cluster runs; "<program> kubectl"
// is kubectl.
func (c *Cluster) Program() string { return c.program }

// Stop ends the processes and removes the data. A second call does nothing.
func (c *Cluster) Stop() error {
	var errs []error
	for _, p := range []*proc.Process{c.ControllerManager, c.APIServer, c.Etcd} {
		if p == nil {
			continue
		}
		if err := p.Kill(); err != nil { // the data is deleted anyway
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, c.removeDir())...)
}

func (c *Cluster) findProgram(context.Context) error {
	if c.program == "" {
		c.program = os.Getenv("HOOKLOOP_CONTROLPLANE")
	}
	if c.program == "" {
		c.program = filepath.Join(Root(), ".cache", "bin", "controlplane")
	}
	if _, err := os.Stat(c.program); err != nil {
		return fmt.Errorf("the program is missing (%w); build it with: make controlplane", err)
	}
	return nil
}

// Root returns the repository's folder.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

func (c *Cluster) choosePorts(context.Context) error {
	free, err := FreePorts(4)
	if err != nil {
		return err
	}
	c.ports = ports{etcd: free[0], peer: free[1], api: free[2], manager: free[3]}
	return nil
}

func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }

func (c *Cluster) run(name string, args []string) (*proc.Process, error) {
	log, err := os.OpenFile(c.path(name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	p, err := proc.Start(proc.Spec{Name: name, Path: c.program, Args: append([]string{name}, args...), Log: log})
	if err != nil { // no process runs that Stop could end
		return nil, errors.Join(err, log.Close())
	}
	return p, nil
}

func (c *Cluster) startEtcd(context.Context) (err error) {
	c.Etcd, err = c.run("etcd", c.etcdArgs())
	return err
}

func (c *Cluster) startAPIServer(ctx context.Context) (err error) {
	if c.APIServer, err = c.run("kube-apiserver", c.apiServerArgs()); err != nil {
		return err
	}
	return c.AwaitAPIServer(ctx)
}

// Await waits until the control plane is ready, for instance after a process was restarted or
// resumed. The API server is not ready without etcd.
func (c *Cluster) Await(ctx context.Context) error {
	if err := c.AwaitAPIServer(ctx); err != nil {
		return err
	}
	return c.awaitManager(ctx)
}

// AwaitAPIServer waits until the API server is ready, after a restart for instance.
func (c *Cluster) AwaitAPIServer(ctx context.Context) error {
	return c.APIServer.Await(ctx, func(ctx context.Context) error {
		return c.ready(ctx, fmt.Sprintf("https://127.0.0.1:%d/readyz", c.ports.api))
	})
}

func (c *Cluster) applyCRDs(ctx context.Context) error {
	for _, file := range c.crds {
		if _, err := c.Kubectl(ctx, "apply", "--server-side", "-f", file); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) startManager(ctx context.Context) (err error) {
	if c.ControllerManager, err = c.run("kube-controller-manager", c.managerArgs()); err != nil {
		return err
	}
	return c.awaitManager(ctx)
}

func (c *Cluster) awaitManager(ctx context.Context) error {
	return c.ControllerManager.Await(ctx, func(ctx context.Context) error {
		return c.ready(ctx, fmt.Sprintf("https://127.0.0.1:%d/healthz", c.ports.manager))
	})
}

// ready requests a health endpoint.
func (c *Cluster) ready(ctx context.Context, url string) error {
	pair, err := tls.LoadX509KeyPair(c.path("admin.crt"), c.path("admin.key"))
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: c.ca.pool(), Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport, Timeout: time.Second}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // nothing is read from it
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// awaitDefaults waits for the objects that a controller manager creates in every cluster: the
// namespace default and its ServiceAccount.
func (c *Cluster) awaitDefaults(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return err
	}
	return c.ControllerManager.Await(ctx, func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}
