package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/serve"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// compareTimeout is the time in which the control plane reaches the rendered state.
const compareTimeout = 3 * time.Minute

// comparison compares what `hookloop render` prints with the control plane.
type comparison struct {
	cluster  *cluster.Cluster
	client   dynamic.Interface
	mapper   meta.RESTMapper
	mark     cluster.Mark
	rendered result
	// expected are the rendered objects with the API server's defaults.
	expected map[named]map[string]any
}

// compare applies the objects of a sample, renders them, and waits until the control plane has what
// render prints. It deletes the objects except for Namespaces. The sample's hook runs at the address
// in dir.
func (s *environment) compare(ctx context.Context, out io.Writer, dir string, c sample) (err error) {
	mark, err := s.cluster.Mark()
	if err != nil {
		return err
	}
	if err := s.apply(ctx, dir, c); err != nil {
		return err
	}
	compared, err := newComparison(s.cluster, mark)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, compared.remove(context.WithoutCancel(ctx), c.objectPaths(dir))) }()
	args := []string{"--until-settled"}
	for _, path := range c.paths(dir) {
		args = append(args, "-f", path)
	}
	if err := compared.identify(ctx, filepath.Join(dir, identified), c.objectPaths(dir)); err != nil {
		return err
	}
	if err := s.render(ctx, &compared.rendered, append(args, "-f", filepath.Join(dir, identified))...); err != nil {
		return err
	}
	var differences string
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, compareTimeout, true,
		func(ctx context.Context) (bool, error) {
			found, err := compared.differences(ctx)
			if err == nil {
				differences = found
			}
			return err == nil && found == "", err
		})
	if err != nil {
		return fmt.Errorf("%s: the control plane differs from what hookloop render prints: %w\n%s", c, err, differences)
	}
	_, err = fmt.Fprintf(out, "  hookloop render prints what the control plane has: %d objects, %d parents\n",
		len(compared.rendered.Changes), len(compared.rendered.Parents))
	if err != nil {
		return err
	}
	return s.compareLive(ctx, out, c.paths(dir)[0])
}

// compareLive lets a user who may only read render the cluster as it is: there is nothing to do. A
// namespace of another example may be on its way out at first.
func (s *environment) compareLive(ctx context.Context, out io.Writer, controller string) error {
	mark, err := s.cluster.Mark()
	if err != nil {
		return err
	}
	var live result
	err = wait.PollUntilContextTimeout(ctx, time.Second, compareTimeout, true, func(ctx context.Context) (bool, error) {
		live = result{}
		args := []string{"-f", controller, "--live", "--kubeconfig", s.reader, "--until-settled", "--ready", "none"}
		err := s.render(ctx, &live, args...)
		return len(live.Writes) == 0 && len(live.Changes) == 0, err
	})
	if err != nil {
		return fmt.Errorf("hookloop render --live has writes in a steady state: %+v, %+v: %w", live.Writes, live.Changes, err)
	}
	writes, err := s.cluster.Writes(mark)
	if err != nil {
		return err
	}
	for _, w := range writes {
		if w.User == reader {
			return fmt.Errorf("hookloop render --live has sent a write: %s", w)
		}
	}
	_, err = fmt.Fprintf(out, "  hookloop render --live has nothing to do, and sends no write\n")
	return err
}

// paths returns the files of the controller and the CRD.
func (c sample) paths(dir string) []string {
	paths := []string{filepath.Join(dir, c.controllerFile())}
	if crd := filepath.Join(dir, "crd.yaml"); exists(crd) {
		paths = append(paths, crd)
	}
	return paths
}

// objectPaths returns the files of the other objects.
func (c sample) objectPaths(dir string) []string {
	var paths []string
	for _, file := range c.objects {
		paths = append(paths, filepath.Join(dir, file))
	}
	return paths
}

// identified is the file with the objects that are rendered.
const identified = "identified.yaml"

// identify writes the objects of files with the uids that they have in the cluster: labels and
// names of the engine's objects have the uid of the parent in them.
func (c *comparison) identify(ctx context.Context, file string, files []string) error {
	if len(files) == 0 {
		return os.WriteFile(file, nil, 0o600)
	}
	objects, err := readObjects(files...)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, o := range objects {
		name, err := c.name(o)
		if err != nil {
			return err
		}
		present, err := c.get(ctx, name)
		if err != nil || present == nil {
			return errors.Join(fmt.Errorf("%s is not in the cluster", name), err)
		}
		o.SetUID(present.GetUID())
		data, err := o.MarshalJSON()
		if err != nil {
			return err
		}
		out.WriteString("---\n")
		out.Write(data)
	}
	return os.WriteFile(file, out.Bytes(), 0o600)
}

// name returns the name of a file's object in the cluster.
func (c *comparison) name(o *unstructured.Unstructured) (named, error) {
	kind := o.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return named{}, err
	}
	n := named{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName(),
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace && n.Namespace == "" {
		n.Namespace = metav1.NamespaceDefault
	}
	return n, nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// apply applies the sample's files, and waits until the controller runs.
func (s *environment) apply(ctx context.Context, dir string, c sample) error {
	paths := c.paths(dir)
	steps := [][]string{}
	if crd := filepath.Join(dir, "crd.yaml"); exists(crd) {
		steps = append(steps, []string{"apply", "--server-side", "-f", crd},
			[]string{"wait", "--for=condition=Established", "--timeout=180s", "-f", crd})
	}
	steps = append(steps, []string{"apply", "-f", paths[0]},
		[]string{"wait", "--for=condition=Ready", "--timeout=180s", "-f", paths[0]})
	for _, file := range c.objects {
		steps = append(steps, []string{"apply", "--server-side", "-f", filepath.Join(dir, file)})
	}
	for _, step := range steps {
		if err := s.run(ctx, step...); err != nil {
			return err
		}
	}
	return nil
}

// render runs `hookloop render`, and decodes its result.
func (s *environment) render(ctx context.Context, into *result, args ...string) error {
	args = append([]string{"render", "-o", "json"}, args...)
	program := exec.CommandContext(ctx, serve.Program("hookloop"), args...) //nolint:gosec // our own program
	program.Env = s.env()
	var out, faults bytes.Buffer
	program.Stdout = &out
	program.Stderr = &faults
	if err := program.Run(); err != nil {
		return fmt.Errorf("hookloop %s: %w: %s%s", strings.Join(args, " "), err, faults.String(), out.String())
	}
	if err := json.Unmarshal(out.Bytes(), into); err != nil {
		return err
	}
	if !into.Settled || len(into.Parents) == 0 {
		return fmt.Errorf("hookloop %s: settled %t, %d parents, expected parents that settle",
			strings.Join(args, " "), into.Settled, len(into.Parents))
	}
	return nil
}

func newComparison(c *cluster.Cluster, mark cluster.Mark) (*comparison, error) {
	config := c.Admin()
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	documents, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	groups, err := restmapper.GetAPIGroupResources(documents)
	if err != nil {
		return nil, err
	}
	return &comparison{
		cluster: c, client: client, mapper: restmapper.NewDiscoveryRESTMapper(groups), mark: mark,
		expected: map[named]map[string]any{},
	}, nil
}

// differences describes what differs; empty if nothing does.
func (c *comparison) differences(ctx context.Context) (string, error) {
	var out strings.Builder
	for _, change := range c.rendered.Changes {
		text, err := c.object(ctx, change)
		if err != nil {
			return "", err
		}
		out.WriteString(text)
	}
	for _, parent := range c.rendered.Parents {
		text, err := c.status(ctx, parent)
		if err != nil {
			return "", err
		}
		out.WriteString(text)
	}
	text, err := c.unexpected(ctx)
	out.WriteString(text)
	return out.String(), err
}

// object compares one rendered object.
func (c *comparison) object(ctx context.Context, change change) (string, error) {
	present, err := c.get(ctx, change.named)
	switch {
	case err != nil:
		return "", err
	case present == nil && change.After == nil:
		return "", nil
	case present == nil:
		return fmt.Sprintf("%s does not exist\n", change.named), nil
	case change.After == nil:
		return fmt.Sprintf("%s exists\n", change.named), nil
	}
	want := c.expected[change.named]
	if want == nil {
		defaulted, err := c.defaulted(ctx, change, present)
		if err != nil { // a Namespace that does not exist yet, for instance
			return fmt.Sprintf("%s: %v\n", change.named, err), nil
		}
		want = normalise(defaulted)
		c.expected[change.named] = want
	}
	if diff := cmp.Diff(want, normalise(present)); diff != "" {
		return fmt.Sprintf("%s (-rendered +real):\n%s", change.named, diff), nil
	}
	return "", nil
}

// get returns an object; nil if it does not exist.
func (c *comparison) get(ctx context.Context, n named) (*unstructured.Unstructured, error) {
	resource, err := c.resource(n)
	if err != nil {
		return nil, err
	}
	u, err := resource.Get(ctx, n.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	return u, err
}

func (c *comparison) resource(n named) (dynamic.ResourceInterface, error) {
	kind := schema.FromAPIVersionAndKind(n.APIVersion, n.Kind)
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if n.Namespace == "" {
		return c.client.Resource(mapping.Resource), nil
	}
	return c.client.Resource(mapping.Resource).Namespace(n.Namespace), nil
}

// status compares the status of a parent. That of built-in kinds belongs to a controller of
// Kubernetes, which render does not have.
func (c *comparison) status(ctx context.Context, parent parent) (string, error) {
	if !strings.Contains(schema.FromAPIVersionAndKind(parent.APIVersion, "").Group, ".") ||
		parent.Kind == "CustomResourceDefinition" {
		return "", nil
	}
	present, err := c.get(ctx, parent.named)
	if err != nil || present == nil {
		return fmt.Sprintf("%s does not exist\n", parent.named), err
	}
	if diff := cmp.Diff(generic(parent.Status), statusOf(present)); diff != "" {
		return fmt.Sprintf("status of %s (-rendered +real):\n%s", parent.named, diff), nil
	}
	return "", nil
}

// finalizers is the engine's own list of the finalizers of controllers in the cluster. Render's
// controllers are not in the cluster.
const finalizers = "hookloop-finalizers"

// unexpected names the objects that the engine has created and render has not.
func (c *comparison) unexpected(ctx context.Context) (string, error) {
	writes, err := c.cluster.Writes(c.mark)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, w := range writes {
		of := schema.GroupResource{Group: w.Group, Resource: w.Resource}
		if w.Verb != "create" || w.Code >= 300 || !own(w) || w.Name == finalizers {
			continue
		}
		kind, err := c.mapper.KindFor(of.WithVersion(""))
		if err != nil {
			return "", err
		}
		name := named{
			APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: w.Namespace, Name: w.Name,
		}
		if slices.ContainsFunc(c.rendered.Changes, func(r change) bool { return r.named == name }) {
			continue
		}
		if present, err := c.get(ctx, name); err != nil {
			return "", err
		} else if present != nil {
			fmt.Fprintf(&out, "%s exists, and is not rendered\n", name)
		}
	}
	return out.String(), nil
}

// remove deletes the objects of files and those that the engine has made of them, and waits until
// they are gone. It keeps the Namespaces of the files.
func (c *comparison) remove(ctx context.Context, files []string) error {
	ctx, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()
	if len(files) == 0 { // the parents are CRDs
		return nil
	}
	objects, err := readObjects(files...)
	if err != nil {
		return err
	}
	var gone []named
	for _, o := range objects {
		n, err := c.name(o)
		if err != nil {
			return err
		}
		if n.Kind == "Namespace" {
			continue
		}
		resource, err := c.resource(n)
		if err != nil {
			return err
		}
		if err := resource.Delete(ctx, n.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		gone = append(gone, n)
	}
	for _, change := range c.rendered.Changes {
		if change.Change == "created" {
			gone = append(gone, change.named)
		}
	}
	return c.awaitGone(ctx, gone)
}

func (c *comparison) awaitGone(ctx context.Context, names []named) error {
	for _, n := range names {
		err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			present, err := c.get(ctx, n)
			return present == nil, err
		})
		if err != nil {
			return fmt.Errorf("%s is not deleted: %w", n, err)
		}
	}
	return nil
}
