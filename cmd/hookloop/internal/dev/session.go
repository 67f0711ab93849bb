package dev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/filewatch"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/hookprocess"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/overlay"
	"github.com/hookloop/hookloop/engine"
	"github.com/hookloop/hookloop/server"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// session holds the state of one Run. Its fields belong to the goroutine that runs loop, except
// those that are safe for concurrent use.
type session struct {
	*Options
	print    *printer
	observer *observer
	cluster  *cluster
	declared *declared
	// applied lists the CRDs that the session has applied, even if they are no longer in the files.
	applied []string
	// stdin is what the file "-" has.
	stdin []byte
	// process is the running hook. It is nil without a command, and while the hook does not run.
	process *hookprocess.Process
	output  *hookOutput
	address string
	// env is added to the hook's environment.
	env []string
	// starts counts the starts of the hook.
	starts int
	// replace passes the controllers to the engine; engineUp is closed when it is set.
	replace  func([]*unstructured.Unstructured) error
	engineUp chan struct{}
	// changed receives bursts of changed files.
	changed chan []string
}

// Run runs a session until ctx ends. A wrong option is a *[UsageError]. Every error names one
// problem and what to do about it.
func Run(ctx context.Context, o Options) error {
	p := &printer{json: o.JSON, color: o.Color, out: o.Out}
	s := &session{
		Options: &o, print: p, observer: newObserver(p), declared: &declared{},
		engineUp: make(chan struct{}), changed: make(chan []string, 1),
	}
	switch {
	case o.Local && (o.Kubeconfig != "" || o.Context != "" || o.Intercept != ""):
		return usagef("--local: got --kubeconfig, --context or --intercept, too, expected one of them alone")
	case o.Intercept != "":
		return s.intercept(ctx)
	}
	s.observer.records = o.Cleanup
	var err error
	s.stdin, err = o.readStdin()
	if err != nil {
		return err
	}
	s.declared, err = s.read()
	if err != nil {
		return err
	}
	if o.Local {
		return s.local(ctx)
	}
	s.cluster, err = connect(ctx, &o)
	if err != nil {
		return err
	}
	return s.develop(ctx)
}

// develop runs the controllers of the files on the cluster.
func (s *session) develop(ctx context.Context) error {
	s.print.notef("cluster %q at %s", s.cluster.context, s.cluster.config.Host)
	if err := s.check(ctx, s.declared); err != nil {
		return err
	}
	defer s.stopHook()
	if err := s.startHook(ctx); err != nil {
		return err
	}
	if err := s.applyCRDs(ctx); err != nil {
		if s.Cleanup {
			err = errors.Join(err, s.removeCRDs(context.WithoutCancel(ctx)))
		}
		return err
	}
	return s.run(ctx)
}

// applyCRDs applies the CRDs of the files.
func (s *session) applyCRDs(ctx context.Context) error {
	for _, crd := range s.declared.crds {
		if !slices.Contains(s.applied, crd.GetName()) {
			s.applied = append(s.applied, crd.GetName())
		}
	}
	return s.cluster.applyCRDs(ctx, s.declared.crds, func(name string, created bool) {
		verb := "changed"
		if created {
			verb = "created"
		}
		s.print.notef("CustomResourceDefinition %s %s", name, verb)
	})
}

// startHook starts the hook's process, if there is a command.
func (s *session) startHook(ctx context.Context) error {
	if len(s.Command) == 0 {
		return nil
	}
	var addresses []string
	for _, c := range s.declared.controllers { // none for an intercept
		addresses = append(addresses, hookprocess.Declared(c)...)
	}
	var err error
	s.output = &hookOutput{printer: s.print}
	s.process, err = hookprocess.Start(ctx, hookprocess.Spec{
		Command: s.Command, Output: s.output, Declared: addresses, Timeout: s.HookTimeout,
		Env: s.env, DialsIn: s.Intercept != "",
	})
	if err != nil {
		s.process = nil
		s.output.flush()
		return err
	}
	s.address = s.process.Address()
	s.starts++
	if s.Intercept != "" {
		s.print.notef("hook %q dials in at %s", s.process, s.Gateway.Address)
		return nil
	}
	s.print.notef("hook %q listens on %s", s.process, s.address)
	return nil
}

func (s *session) stopHook() {
	if s.process != nil {
		s.process.Stop()
		s.process = nil
		s.output.flush()
	}
}

// controllers returns the controllers for the engine, with the address of the hook's process. An
// annotation changes with each start of the hook, so that the engine syncs all parents then.
func (s *session) controllers() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, c := range s.declared.controllers {
		c = c.DeepCopy()
		if s.address != "" {
			if err := hookprocess.Redirect(c, s.address); err != nil {
				return nil, fmt.Errorf("%s: %w", displayName(c.GetKind(), c.GetName()), err)
			}
			annotations := c.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[engine.RestartAnnotation] = strconv.Itoa(s.starts)
			c.SetAnnotations(annotations)
		}
		all = append(all, c)
	}
	return all, nil
}

// Follow implements server.Declared: it hands the engine to the loop.
func (s *session) Follow(ctx context.Context, replace func([]*unstructured.Unstructured) error) error {
	all, err := s.controllers()
	if err != nil {
		return err
	}
	if err := replace(all); err != nil {
		return err
	}
	s.replace = replace
	close(s.engineUp)
	<-ctx.Done()
	return nil
}

// run runs the engine, watches the files, and runs loop. The engine ends last, because the cleanup
// needs it.
func (s *session) run(ctx context.Context) error {
	engineCtx, stopEngine := context.WithCancel(context.WithoutCancel(ctx))
	defer stopEngine()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	begun := make(chan struct{})
	watching := errgroup.Group{}
	watching.Go(func() error {
		err := filewatch.Watch(ctx, s.watched(), func() { close(begun) })
		stop()
		return err
	})
	select {
	case <-begun: // no change is missed once a controller is reported as running
	case <-ctx.Done():
	}
	group, groupCtx := errgroup.WithContext(engineCtx)
	group.Go(func() error {
		declared, err := overlay.From(s)
		if err != nil {
			return err
		}
		return server.Run(engineCtx, s.config(declared))
	})
	defer context.AfterFunc(groupCtx, stop)() // an engine that fails ends the session
	select {
	case <-s.engineUp:
		s.loop(ctx)
	case <-ctx.Done():
	}
	stop()
	err := watching.Wait()
	if s.Cleanup {
		err = errors.Join(err, s.cleanup(context.WithoutCancel(ctx), groupCtx))
	}
	stopEngine()
	err = errors.Join(err, group.Wait())
	if s.Cleanup {
		err = errors.Join(err, s.removeMade(context.WithoutCancel(ctx)))
	}
	return err
}

// config is the configuration of the engine.
func (s *session) config(declared server.Declared) server.Config {
	c := server.DefaultConfig()
	c.Version = s.Version
	c.Rest = s.cluster.config
	c.ClientQPS = -1
	c.MetricsAddress = "0"
	c.HealthAddress = "0"
	c.Declared = declared
	c.Observer = s.observer
	c.Log.Output = discard{}
	c.Log.Level = "error"
	if s.Verbose {
		c.Log.Output = &hookOutput{printer: s.print}
		c.Log.Level = "info"
		c.Log.Encoder = "console"
	}
	return c
}

// discard drops the engine's log, because the observer prints what is wrong.
type discard struct{}

// Write implements io.Writer.
func (discard) Write(b []byte) (int, error) { return len(b), nil }

// watched are the files of the hook and of the controllers.
func (s *session) watched() filewatch.Config {
	paths := slices.Clone(s.Watch)
	if len(paths) == 0 && len(s.Command) > 0 {
		paths = []string{"."}
	}
	for _, file := range s.Files {
		if file != "-" {
			paths = append(paths, file)
		}
	}
	return filewatch.Config{
		Paths: paths, Recursive: true, Ignore: s.ignored,
		Changed: func(paths []string) {
			select {
			case s.changed <- paths:
			case earlier := <-s.changed: // the loop is busy: one burst of both
				s.changed <- append(earlier, paths...)
			}
		},
	}
}

// loop handles changed files and the end of the hook until ctx is done.
func (s *session) loop(ctx context.Context) {
	for {
		var ended <-chan struct{}
		if s.process != nil {
			ended = s.process.Done()
		}
		select {
		case <-ctx.Done():
			return
		case paths := <-s.changed:
			s.handle(ctx, paths)
		case <-ended:
			s.observer.hookDown.Store(true)
			s.output.flush()
			s.print.problemf("hook %q ended: %s; it starts again when a file changes", s.process, exitText(s.process.Err()))
			s.stopHook()
		}
	}
}

func exitText(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// handle reacts to changed files. If a manifest has changed, it reads the manifests again. If
// another file has changed, or the hook does not run, it starts the hook again.
func (s *session) handle(ctx context.Context, paths []string) {
	manifests := 0
	for _, path := range paths {
		if s.isManifest(path) {
			manifests++
		}
	}
	others := len(paths) - manifests
	if present := existing(paths); len(present) > 0 { // temporary files of editors are gone
		paths = present
	}
	if manifests > 0 {
		if err := s.reload(ctx); err != nil {
			s.complain(ctx, err)
		}
	}
	if len(s.Command) == 0 || others == 0 && s.process != nil {
		return
	}
	s.print.notef("%s changed: the hook is started again", strings.Join(few(paths), ", "))
	s.restart(ctx)
}

// restart starts the hook again, and makes the engine sync all parents.
func (s *session) restart(ctx context.Context) {
	s.observer.hookDown.Store(true)
	s.stopHook()
	if err := s.startHook(ctx); err != nil {
		s.complain(ctx, fmt.Errorf("%w; it starts again when a file changes", err))
		return
	}
	if s.Intercept == "" {
		if err := s.pass(); err != nil {
			s.complain(ctx, err)
		}
	}
	s.observer.hookDown.Store(false)
}

// existing returns the paths of files that exist.
func existing(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		_, err := os.Stat(path)
		return err != nil
	})
}

// complain prints a problem that the user can repair by changing a file.
func (s *session) complain(ctx context.Context, err error) {
	if ctx.Err() == nil {
		s.print.problemf("%v", err)
	}
}

// few returns the first paths of a list, relative to the present folder.
func few(paths []string) []string {
	const most = 3
	var texts []string
	for i, path := range paths {
		if i == most {
			return append(texts, fmt.Sprintf("%d more", len(paths)-most))
		}
		if relative, err := filepath.Rel(absolute("."), absolute(path)); err == nil {
			path = relative
		}
		texts = append(texts, path)
	}
	return texts
}

// reload reads the manifests again, and passes them on.
func (s *session) reload(ctx context.Context) error {
	d, err := s.read()
	if err == nil {
		err = s.check(ctx, d)
	}
	if err != nil {
		return fmt.Errorf("%w; the controllers stay as they were", err)
	}
	s.declared = d
	if err := s.applyCRDs(ctx); err != nil {
		return err
	}
	return s.pass()
}

// pass passes the controllers to the engine.
func (s *session) pass() error {
	all, err := s.controllers()
	if err != nil {
		return err
	}
	return s.replace(all)
}
