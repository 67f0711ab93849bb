package verify

import (
	"context"
	"maps"
	"slices"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/hookprocess"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// start starts the hook of Command, and adds its addresses to the options. The controller of the
// files has the paths of webhooks. The caller stops the hook.
func (o *Options) start(ctx context.Context) (*hookprocess.Process, error) {
	if len(o.Addresses) > 0 {
		return nil, usagef("--hook: got an address and a command after --, expected one of them")
	}
	if len(o.Files) == 0 {
		return nil, usagef("-f: got no file, expected that of the controller, because a command after -- starts the hook")
	}
	files, err := readFiles(o.Files)
	if err != nil {
		return nil, err
	}
	content, err := files.controller.Map()
	if err != nil {
		return nil, usagef("--controller: %v", err)
	}
	controller := &unstructured.Unstructured{Object: content}
	// A hook that cannot be asked is an error before the command starts.
	if err := hookprocess.Redirect(controller.DeepCopy(), "the address of the command"); err != nil {
		return nil, usagef("--controller: %s %q: %v", controller.GetKind(), controller.GetName(), err)
	}
	process, err := hookprocess.Start(ctx, hookprocess.Spec{
		Command: o.Command, Declared: hookprocess.Declared(controller),
	})
	if err != nil {
		return nil, err
	}
	if err := hookprocess.Redirect(controller, process.Address()); err != nil {
		process.Stop()
		return nil, usagef("--controller: %s %q: %v", controller.GetKind(), controller.GetName(), err)
	}
	hooks, _, _ := unstructured.NestedMap(content, "spec", "hooks")
	for _, operation := range slices.Sorted(maps.Keys(hooks)) {
		if url, _, _ := unstructured.NestedString(content, "spec", "hooks", operation, "webhook", "url"); url != "" {
			o.Addresses = append(o.Addresses, operation+"="+url)
		}
	}
	if len(o.Addresses) == 0 {
		o.Addresses = []string{process.Address()}
		o.Insecure = true
	}
	return process, nil
}
