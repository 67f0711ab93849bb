// Package hooktest calls the functions of a hook as the engine does, without an engine, a cluster
// or a server:
//
//	answer, err := hooktest.Sync(ctx, sync, "testdata/website.yaml", "Deployment.apps/v1")
//
// The first document of the file is the parent, the others are its observed children. For a map
// hook, the second one is the input. The package encodes the response as a server does, and
// validates it by those rules of the engine that depend only on the parent and the declared kinds.
// The cases of sdk/testdata/answers.json test these rules in the engine and in all SDKs. Its data
// are the files of the test. Functions are safe for concurrent use.
//
// A kind of children is declared as "Deployment.apps/v1", a cluster-scoped one as
// "Namespace.v1:Cluster". A parent without a namespace counts as cluster-scoped: each of its
// children needs a namespace, unless its kind is declared as cluster-scoped.
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

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"google.golang.org/protobuf/proto"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Answer is a response as the engine reads it.
type Answer struct {
	// Children are the desired objects (a decorator's attachments, a map hook's outputs) in the order
	// of the response, decoded. Integers are json.Number.
	Children []map[string]any
	// Status is the status, decoded. It is nil if the response has none.
	Status map[string]any
}

// Sync calls a composite's function with the objects of a file and validates the response. Kinds
// ("Pod.v1") are the declared kinds of which the file has no object. The error is that of the
// function, or describes the fault of the file or of the response.
func Sync(ctx context.Context, f hook.SyncFunc, file string, kinds ...string) (*Answer, error) {
	request, declared, err := read(file, kinds, false)
	if err != nil {
		return nil, err
	}
	return ask(ctx, hook.Composite{Sync: f}, compositev1.CompositeHookService_Sync_FullMethodName, request, declared)
}

// Check validates a composite's response to a request of hook.NewSyncRequest, as Sync does. Kinds
// are the declared kinds of which the request has no group. It returns the response as the engine
// reads it.
func Check(request *hook.SyncRequest, response *hook.SyncResponse, kinds ...string) (*Answer, error) {
	declared, err := declaredBy(request.Children, kinds)
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

// CheckDecoration validates a decorator's response, as Check does.
func CheckDecoration(request *hook.SyncRequest, response *hook.DecorateResponse, kinds ...string) (*Answer, error) {
	declared, err := declaredBy(request.Children, kinds)
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

// declaredBy returns the kinds of a request's groups, and others.
func declaredBy(groups hook.Groups, others []string) (kinds, error) {
	declared, err := declare(others)
	if err != nil {
		return nil, err
	}
	for kind := range groups {
		if _, known := declared[kind]; !known {
			declared[kind] = false
		}
	}
	return declared, nil
}

// Finalize calls the function as Sync does, for a parent that is finalized.
func Finalize(ctx context.Context, f hook.SyncFunc, file string, kinds ...string) (*Answer, error) {
	request, declared, err := read(file, kinds, true)
	if err != nil {
		return nil, err
	}
	return ask(ctx, hook.Composite{Finalize: f}, compositev1.CompositeHookService_Finalize_FullMethodName, request,
		declared)
}

// Decorate calls a decorator's function with the objects of a file, and validates the response: the
// first object is the one to decorate, the others are its attachments.
func Decorate(ctx context.Context, f hook.DecorateFunc, file string, kinds ...string) (*Answer, error) {
	request, declared, err := read(file, kinds, false)
	if err != nil {
		return nil, err
	}
	return ask(ctx, hook.Decorator{Sync: f}, decoratorv1.DecoratorHookService_Sync_FullMethodName, request, declared)
}

// read returns the request of a file, and the declared kinds.
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
	declared, err = declaredBy(request.Children, keys)
	return request, declared, err
}

// load returns the objects of a file, at least one.
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

// ask calls the function and validates its response.
func ask(ctx context.Context, h registrar, method string, request *hook.SyncRequest, declared kinds) (*Answer, error) {
	v := &validator{field: "children", namespace: request.Parent.Namespace, declared: declared}
	return v.ask(ctx, h, method, encodeRequest(method, request))
}

// ask calls the function with a message of the contract, and validates its response.
func (v *validator) ask(ctx context.Context, h registrar, method string, request proto.Message) (*Answer, error) {
	response, err := call(ctx, h, method, request)
	if err != nil {
		return nil, err
	}
	answer := &Answer{}
	var status []byte
	var desired []*hookv1.DesiredObject
	switch r := response.(type) {
	case *compositev1.SyncResponse:
		status = r.Status
		desired = r.GetChildren()
	case *compositev1.FinalizeResponse:
		status = r.Status
		desired = r.GetChildren()
	case *decoratorv1.SyncResponse:
		v.field, status, desired = "attachments", r.Status, r.GetAttachments()
	case *decoratorv1.FinalizeResponse:
		v.field, status, desired = "attachments", r.Status, r.GetAttachments()
	case interface {
		GetOutputs() []*hookv1.DesiredObject
	}:
		v.field, desired = "outputs", r.GetOutputs()
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
