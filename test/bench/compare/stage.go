package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/bench/compare/website"
	"github.com/hookloop/hookloop/test/cluster"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// waitTimeout bounds each wait. A longer wait is a fault.
const waitTimeout = 3 * time.Minute

// stage is a control plane with one program.
type stage struct {
	options
	program  program
	progress progressFunc

	dir         string
	cluster     *cluster.Cluster
	hook        *proc.Process
	hookAddress string
	replicas    []*replica

	client *dynamic.DynamicClient
	typed  *kubernetes.Clientset
	world  *world
	// edits counts the changes by the client, so that each differs.
	edits int
}

// open starts the control plane and the program. If it fails, the stage holds the processes that it
// has started.
func (s *stage) open(ctx context.Context) (err error) {
	s.dir, err = os.MkdirTemp("", "hookloop-compare-")
	if err != nil {
		return err
	}
	crd := filepath.Join(s.dir, "website.yaml")
	if err := os.WriteFile(crd, website.CRD, 0o600); err != nil {
		return err
	}
	s.cluster, err = cluster.New(ctx, cluster.Options{
		Dir: filepath.Join(s.dir, "cluster"), CRDs: []string{filepath.Join(cluster.Root(), "manifests", "crds"), crd},
	})
	if err != nil {
		return err
	}
	config := rest.CopyConfig(s.cluster.Admin())
	config.UserAgent = "hookloop-compare"
	config.QPS = -1
	s.client, err = dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	s.typed, err = kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = s.typed.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	s.world, err = follow(s.client)
	if err != nil {
		return err
	}
	if err := s.startAll(ctx, nil); err != nil {
		return err
	}
	return s.declare(ctx)
}

// declare creates the controller of a hook, and waits until it runs.
func (s *stage) declare(ctx context.Context) error {
	if s.hook == nil {
		return nil
	}
	data, err := os.ReadFile(source("hook/controller.yaml"))
	if err != nil {
		return err
	}
	data = bytes.ReplaceAll(data, []byte("127.0.0.1:9443"), []byte(s.hookAddress))
	var o unstructured.Unstructured
	if err := yaml.Unmarshal(data, &o.Object); err != nil {
		return err
	}
	controllers := s.client.Resource(v1alpha1.GroupVersion.WithResource("compositecontrollers"))
	if _, err := controllers.Create(ctx, &o, metav1.CreateOptions{}); err != nil {
		return err
	}
	return poll(ctx, "the controller runs", func(ctx context.Context) error {
		o, err := controllers.Get(ctx, o.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
		if err != nil {
			return err
		}
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == v1alpha1.ConditionReady && c["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %v", conditions)
	})
}

// source returns the path of a file of this folder.
func source(name string) string {
	return filepath.Join(cluster.Root(), "test", "bench", "compare", filepath.FromSlash(name))
}

// lastWords returns the end of the program's log, for the message of a failure.
func (s *stage) lastWords() string {
	var b bytes.Buffer
	for _, r := range s.replicas {
		output := r.Output()
		fmt.Fprintf(&b, "\nthe log of %s ends:\n%s", r.user, output[max(0, len(output)-2000):])
	}
	return b.String()
}

// close ends everything, dependents first.
func (s *stage) close() error {
	var errs []error
	for _, r := range s.replicas {
		errs = append(errs, r.Stop(stopGrace))
	}
	if s.hook != nil {
		errs = append(errs, s.hook.Stop(stopGrace))
	}
	if s.world != nil {
		s.world.close()
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// poll waits until a condition returns nil, and fails with its last error after waitTimeout.
func poll(ctx context.Context, what string, condition func(context.Context) error) error {
	last := condition(ctx)
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, waitTimeout, false, func(ctx context.Context) (
		bool, error,
	) {
		last = condition(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %s: %w: %w", what, err, last)
	}
	return nil
}
