// Package hooktest calls a hook's functions as the engine would, without an engine, a cluster or a
// server:
//
//	answer, err := hooktest.Sync(ctx, sync, "testdata/website.yaml", "Deployment.apps/v1")
//
// The file's first document is the parent, all others are what is observed of its children. The
// answer is written as a server writes it, and checked by the rules of the engine that follow from
// the parent and the declared kinds: sdk/testdata/answers.json lists them, and a test has the
// engine judge the same table. Its data are the test's own files. Functions are safe for concurrent
// use.
//
// A kind of children is declared as "Deployment.apps/v1", and as "Namespace.v1:Cluster" if it is
// cluster-scoped. A parent without a namespace is taken for cluster-scoped: each of its children
// needs a namespace, unless its kind is declared as cluster-scoped.
package hooktest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	compositev1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/decorator/v1"
	hookv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/sdk/go/hook"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Answer is an answer as the engine reads it.
type Answer struct {
	// Children are the desired objects (a decorator's attachments) in the hook's order, decoded;
	// integers are json.Number.
	Children []map[string]any
	// Status is the status, decoded; nil where the hook gave none.
	Status map[string]any
}

// Sync asks a composite's function about the objects of a file. Kinds ("Pod.v1") are those that the
// controller declares beside those that the file has objects of. The error is the function's own,
// or describes what is wrong with the file or the answer.
func Sync(ctx context.Context, f hook.SyncFunc, file string, kinds ...string) (*Answer, error) {
	request, declared, err := read(file, kinds, false)
	if err != nil {
		return nil, err
	}
	return ask(ctx, hook.Composite{Sync: f}, compositev1.CompositeHookService_Sync_FullMethodName, request, declared)
}

// Check checks a composite's answer to a request of hook.NewSyncRequest, as Sync does. Kinds are
// those that the controller declares beside those that the request has groups of. It returns the
// answer as the engine reads it.
func Check(request *hook.SyncRequest, response *hook.SyncResponse, kinds ...string) (*Answer, error) {
	declared, err := declaredBy(request, kinds)
	if err != nil {
		return nil, err
	}
	same := func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) { return response, nil }
	method := compositev1.CompositeHookService_Sync_FullMethodName
	if request.Finalizing {
		method = compositev1.CompositeHookService_Finalize_FullMethodName
	}
	return ask(context.Background(), hook.Composite{Sync: same, Finalize: same}, method, request, declared)
}

// CheckDecoration checks a decorator's answer, as Check does.
func CheckDecoration(request *hook.SyncRequest, response *hook.DecorateResponse, kinds ...string) (*Answer, error) {
	declared, err := declaredBy(request, kinds)
	if err != nil {
		return nil, err
	}
	same := func(context.Context, *hook.SyncRequest) (*hook.DecorateResponse, error) { return response, nil }
	method := decoratorv1.DecoratorHookService_Sync_FullMethodName
	if request.Finalizing {
		method = decoratorv1.DecoratorHookService_Finalize_FullMethodName
	}
	return ask(context.Background(), hook.Decorator{Sync: same, Finalize: same}, method, request, declared)
}

// declaredBy are the kinds of a request's groups, and others.
func declaredBy(request *hook.SyncRequest, others []string) (kinds, error) {
	declared, err := declare(others)
	if err != nil {
		return nil, err
	}
	for kind := range request.Children {
		if _, known := declared[kind]; !known {
			declared[kind] = false
		}
	}
	return declared, nil
}

// Finalize asks as Sync does, about a parent that is being deleted.
func Finalize(ctx context.Context, f hook.SyncFunc, file string, kinds ...string) (*Answer, error) {
	request, declared, err := read(file, kinds, true)
	if err != nil {
		return nil, err
	}
	return ask(ctx, hook.Composite{Finalize: f}, compositev1.CompositeHookService_Finalize_FullMethodName, request, declared)
}

// Decorate asks a decorator's function about the objects of a file: the first is the one to
// decorate, the others are its attachments.
func Decorate(ctx context.Context, f hook.DecorateFunc, file string, kinds ...string) (*Answer, error) {
	request, declared, err := read(file, kinds, false)
	if err != nil {
		return nil, err
	}
	return ask(ctx, hook.Decorator{Sync: f}, decoratorv1.DecoratorHookService_Sync_FullMethodName, request, declared)
}

// read makes a request of a file, and returns the kinds that the controller declares.
func read(file string, keys []string, finalizing bool) (*hook.SyncRequest, kinds, error) {
	declared, err := declare(keys)
	if err != nil {
		return nil, nil, err
	}
	objects, err := load(file)
	if err != nil {
		return nil, nil, err
	}
	request, err := hook.NewSyncRequest(objects[0], objects[1:], slices.Collect(maps.Keys(declared))...)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	request.Finalizing = finalizing
	declared, err = declaredBy(request, keys)
	return request, declared, err
}

// load reads the objects of a file, at least one.
func load(file string) ([]any, error) {
	data, err := os.ReadFile(file) //nolint:gosec // the test names it
	if err != nil {
		return nil, err
	}
	var objects []any
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		text, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", file, len(objects)+1, err)
		}
		if string(bytes.TrimSpace(text)) != "null" {
			objects = append(objects, json.RawMessage(text))
		}
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("%s: has no object, expected the parent", file)
	}
	return objects, nil
}

// ask calls the function, and reads and validates its answer.
func ask(ctx context.Context, h registrar, method string, request *hook.SyncRequest, declared kinds) (*Answer, error) {
	response, err := call(ctx, h, method, request)
	if err != nil {
		return nil, err
	}
	answer := &Answer{}
	v := &validator{field: "children", namespace: request.Parent.Namespace, declared: declared}
	var status []byte
	var desired []*hookv1.DesiredObject
	switch r := response.(type) {
	case *compositev1.SyncResponse:
		status, desired = r.Status, r.GetChildren()
	case *compositev1.FinalizeResponse:
		status, desired = r.Status, r.GetChildren()
	case *decoratorv1.SyncResponse:
		v.field, status, desired = "attachments", r.Status, r.GetAttachments()
	case *decoratorv1.FinalizeResponse:
		v.field, status, desired = "attachments", r.Status, r.GetAttachments()
	}
	if status != nil {
		if err := decode(status, &answer.Status); err != nil {
			return nil, fmt.Errorf("status: %w", err)
		}
	}
	for i, d := range desired {
		var child map[string]any
		if err := decode(d.GetBody(), &child); err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", v.field, i, err)
		}
		answer.Children = append(answer.Children, child)
	}
	if err := v.validate(response, answer.Children, desired); err != nil {
		return nil, err
	}
	return answer, nil
}

func decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into)
}
