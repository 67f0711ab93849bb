// Package localplane runs a Kubernetes control plane on this machine, for `hookloop dev --local`,
// `make demo` and tests. Call [Find] for the programs and [New] to start them:
//
//	assets, err := localplane.Find(ctx, localplane.Search{Fetch: true})
//	cluster, err := localplane.New(ctx, localplane.Options{Assets: assets})
//	defer cluster.Stop()
//	client, err := dynamic.NewForConfig(cluster.Admin())
//
// It starts etcd, kube-apiserver and, if there is one, kube-controller-manager as processes on
// loopback, with TLS, client certificates, RBAC and an audit log of all writes. There is no
// kubelet, so Pods stay Pending. Find only returns programs and builds none. Stop deletes the data,
// and the processes end with this one. A Cluster is safe for concurrent use.
package localplane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hookloop/hookloop/internal/proc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Options configures a [Cluster].
type Options struct {
	// Dir is the folder for certificates, data and logs. If it is empty, New makes a temporary folder,
	// which Stop removes. Data of an earlier cluster in the same folder is deleted. New returns an
	// error if another cluster still runs there.
	Dir string
	// Assets holds the programs to run. etcd and kube-apiserver are required.
	Assets Assets
	// CRDs lists files or folders to apply before kube-controller-manager starts. Its garbage
	// collector looks for new resources only every 30 seconds, so the dependents of objects of later
	// CRDs are deleted that much later.
	CRDs []string
	// OwnGroups starts the processes in process groups of their own, so that Ctrl-C in a terminal does
	// not end them before the caller does.
	OwnGroups bool
}

// Cluster is a running control plane. Make one with [New] and call Stop at the end.
type Cluster struct {
	Etcd, APIServer *proc.Process
	// ControllerManager is nil if the assets have none.
	ControllerManager *proc.Process

	assets Assets
	crds   []string
	groups bool
	dir    string
	remove bool
	lock   *os.File // of dir
	ports  ports
	ca     *authority
	admin  *rest.Config
	audit  auditLog
}

type ports struct{ etcd, peer, api, manager int }

// startTimeout limits a start. With warm caches it takes a few seconds, on a busy machine much
// longer.
const startTimeout = 3 * time.Minute

// New starts a control plane and returns when it is ready.
func New(ctx context.Context, o Options) (*Cluster, error) {
	c := &Cluster{assets: o.Assets, dir: o.Dir, crds: o.CRDs, groups: o.OwnGroups}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	steps := []func(context.Context) error{
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

// Assets returns the programs that the cluster runs.
func (c *Cluster) Assets() Assets { return c.assets }

// Stop ends the processes and deletes the data. You may call it more than once.
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

func (c *Cluster) choosePorts(context.Context) error {
	free, err := FreePorts(4)
	if err != nil {
		return err
	}
	c.ports = ports{etcd: free[0], peer: free[1], api: free[2], manager: free[3]}
	return nil
}

func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }

func (c *Cluster) run(name string, program Program, args []string) (*proc.Process, error) {
	log, err := os.OpenFile(c.path(name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	args = append(slices.Clone(program.Args), args...)
	p, err := proc.Start(proc.Spec{Name: name, Path: program.Path, Args: args, Log: log, OwnGroup: c.groups})
	if err != nil { // no process runs that Stop could end
		return nil, errors.Join(err, log.Close())
	}
	return p, nil
}

func (c *Cluster) startEtcd(context.Context) (err error) {
	c.Etcd, err = c.run("etcd", c.assets.Etcd, c.etcdArgs())
	return err
}

func (c *Cluster) startAPIServer(ctx context.Context) (err error) {
	c.APIServer, err = c.run("kube-apiserver", c.assets.APIServer, c.apiServerArgs())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var waiting sync.WaitGroup
	waiting.Go(func() {
		defer cancel()
		err = c.AwaitAPIServer(ctx)
	})
	ended := false
	select {
	case <-c.Etcd.Done(): // the API server would wait 20 seconds for it
		ended = true
		cancel()
	case <-ctx.Done():
	}
	waiting.Wait()
	if ended {
		return errors.Join(fmt.Errorf("etcd has ended; its output ends: %s", c.Etcd.Output()), c.Etcd.Err())
	}
	return err
}

// Await waits until the control plane is ready, for example after you have restarted or resumed a
// process. The API server is not ready without etcd.
func (c *Cluster) Await(ctx context.Context) error {
	if err := c.AwaitAPIServer(ctx); err != nil {
		return err
	}
	if c.ControllerManager == nil {
		return nil
	}
	return c.awaitManager(ctx)
}

// AwaitAPIServer waits until the API server is ready, for example after a restart.
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
	if c.assets.ControllerManager.IsZero() {
		return nil
	}
	c.ControllerManager, err = c.run("kube-controller-manager", c.assets.ControllerManager, c.managerArgs())
	if err != nil {
		return err
	}
	return c.awaitManager(ctx)
}

// awaitManager waits until the controller manager is healthy. If it ends because the API server
// restarted at the same time, it is started again, as a kubelet would do.
func (c *Cluster) awaitManager(ctx context.Context) error {
	const most = 3
	for starts := 1; ; starts++ {
		err := c.ControllerManager.Await(ctx, func(ctx context.Context) error {
			return c.ready(ctx, fmt.Sprintf("https://127.0.0.1:%d/healthz", c.ports.manager))
		})
		select {
		case <-c.ControllerManager.Done():
		default:
			return err
		}
		if starts == most {
			return fmt.Errorf("kube-controller-manager ends at each start: %w", errors.Join(c.ControllerManager.Err(), err))
		}
		if err := c.ControllerManager.Restart(); err != nil {
			return err
		}
	}
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

// awaitDefaults waits for the objects that every cluster has: the namespace default and, if there
// is a controller manager, its ServiceAccount.
func (c *Cluster) awaitDefaults(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return err
	}
	if c.ControllerManager == nil {
		return c.APIServer.Await(ctx, func(ctx context.Context) error {
			_, err := client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
			return err
		})
	}
	return c.ControllerManager.Await(ctx, func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}
