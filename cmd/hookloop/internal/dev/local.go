package dev

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/hookloop/hookloop/internal/localplane"
	"github.com/hookloop/hookloop/internal/proc"
)

// local runs the session on a control plane of its own, which ends with the session.
func (s *session) local(ctx context.Context) (err error) {
	began := time.Now()
	assets, err := localplane.Find(ctx, localplane.Search{Built: localplane.Beside(), Fetch: true})
	if err != nil {
		return fmt.Errorf("--local: %w", err)
	}
	s.print.notef("a control plane starts: %s", assets.Source)
	plane, err := localplane.New(ctx, localplane.Options{Assets: assets, OwnGroups: true})
	if err != nil {
		if ctx.Err() != nil { // Ctrl-C
			return nil
		}
		return fmt.Errorf("--local: %w", err)
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	s.print.notef("it is ready after %s, and ends with this session", time.Since(began).Round(100*time.Millisecond))
	if assets.ControllerManager.IsZero() {
		s.print.notef("it has no kube-controller-manager: children of deleted parents stay, and Deployments make no Pods")
	}
	if err := s.showKubectl(plane); err != nil {
		return err
	}
	s.cluster, err = newCluster(plane.Admin(), "local", s.Options)
	if err != nil {
		return err
	}
	ctx, stop := whileRunning(ctx, plane.APIServer, plane.Etcd)
	err = s.develop(ctx)
	return errors.Join(stop(), err)
}

// showKubectl prints how to use the control plane in another terminal.
func (s *session) showKubectl(plane *localplane.Cluster) error {
	commands := "export KUBECONFIG=" + plane.Kubeconfig()
	if _, err := exec.LookPath("kubectl"); err != nil && !plane.Assets().Kubectl.IsZero() {
		folder, err := plane.InstallKubectl()
		if err != nil {
			return err
		}
		commands += " PATH=" + folder + ":$PATH"
	}
	s.print.notef("for kubectl in another terminal: %s", commands)
	return nil
}

// whileRunning returns a context that is done when one of the processes ends. stop returns the
// reason.
func whileRunning(ctx context.Context, processes ...*proc.Process) (_ context.Context, stop func() error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	var mu sync.Mutex // guards fault
	var fault error
	for _, p := range processes {
		watching.Go(func() {
			select {
			case <-p.Done():
				mu.Lock()
				defer mu.Unlock()
				fault = fmt.Errorf("--local: %s has ended: %s; its log ends: %s", p.Name(), exitText(p.Err()),
					lastLine(p.Output()))
				cancel(fault)
			case <-ctx.Done():
			}
		})
	}
	return ctx, func() error {
		cancel(nil)
		watching.Wait()
		return fault
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
