package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/hookloop/hookloop/internal/conformance"
	"github.com/hookloop/hookloop/internal/hookprocess"
	"github.com/hookloop/hookloop/internal/manifests"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// startSubject starts the hook that verify asks, and adds its addresses to the options. The
// controller of the files has the paths of webhooks. The caller stops the hook.
func startSubject(ctx context.Context, o *conformance.Options, command []string) (*hookprocess.Process, error) {
	if len(o.Addresses) > 0 {
		return nil, &usageError{"--hook: got an address and a command after --, expected one of them"}
	}
	controller, err := controllerOf(o.Files)
	if err != nil {
		return nil, err
	}
	process, err := hookprocess.Start(ctx, hookprocess.Spec{
		Command: command, Declared: hookprocess.Declared(controller),
	})
	if err != nil {
		return nil, err
	}
	if err := hookprocess.Redirect(controller, process.Address()); err != nil {
		process.Stop()
		return nil, &usageError{fmt.Sprintf("--controller: %v", err)}
	}
	hooks, _, _ := unstructured.NestedMap(controller.Object, "spec", "hooks")
	for _, operation := range slices.Sorted(maps.Keys(hooks)) {
		url, _, _ := unstructured.NestedString(controller.Object, "spec", "hooks", operation, "webhook", "url")
		if url != "" {
			o.Addresses = append(o.Addresses, operation+"="+url)
		}
	}
	if len(o.Addresses) == 0 {
		o.Addresses, o.Insecure = []string{process.Address()}, true
	}
	return process, nil
}

// controllerOf returns the only controller of files.
func controllerOf(files []string) (*unstructured.Unstructured, error) {
	if len(files) == 0 {
		return nil, &usageError{
			"-f: got no file, expected that of the controller, because the hook is started by a command after --",
		}
	}
	set, err := manifests.Read(os.Stdin, files...)
	if err != nil {
		return nil, err
	}
	all, err := set.Controllers()
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, &usageError{fmt.Sprintf("-f: got %d controllers, expected one", len(all))}
	}
	content, err := all[0].Map()
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: content}, nil
}
