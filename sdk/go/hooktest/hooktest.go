// Package hooktest tests the functions of a hook without an engine, a server or a cluster. Put the
// parent and its observed children into a YAML file, and name the other kinds that the controller
// declares:
//
//	func TestWebsite(t *testing.T) {
//		answer, err := hooktest.Sync(t.Context(), sync, "testdata/website.yaml", "Deployment.apps/v1")
//		if err != nil {
//			t.Fatal(err)
//		}
//		// look at answer.Children and answer.Status
//	}
//
// [Sync] and its siblings call the function and check the response by the engine's rules, so that a
// test finds what the engine would reject. If you make requests in Go, call the function yourself
// and pass its response to [Check], [CheckDecoration], [CheckMap] or [CheckTombstone]. [Replay]
// uses a recording of "hookloop serve --record-dir".
//
// Rules that need a cluster, such as whether the API server knows a kind, are not checked. Write a
// kind as "Deployment.apps/v1", or as "Namespace.v1:Cluster" if it is cluster-scoped. A parent
// without a namespace is taken for cluster-scoped: children must then name a namespace, unless
// their kind is declared as cluster-scoped.
//
// All functions are safe for concurrent use.
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
	// Children holds the desired objects (for a decorator the attachments, for a map hook the
	// outputs) in the order of the response. They are decoded; integers are json.Number.
	Children []map[string]any
	// Status is the decoded status, or nil if the response has no status.
	Status map[string]any
}

// Sync calls a composite's function for the objects in a file and checks the response. The first
// document in the file is the parent; the others are its observed children. kinds lists the kinds
// ("Pod.v1") that the controller declares and that have no object in the file. Sync returns the
// function's error, or an error that says what is wrong with the file or the response.
func Sync(ctx context.Context, f hook.SyncFunc, file string, kinds ...string) (*Answer, error) {
	request, declared, err := read(file, kinds, false)
	if err != nil {
		return nil, err
	}
	return ask(ctx, hook.Composite{Sync: f}, compositev1.CompositeHookService_Sync_FullMethodName, request, declared)
}

// Check checks a composite's response to a request that [hook.NewSyncRequest] made. kinds lists the
// kinds that the controller declares and that have no group in the request. Check returns the
// response as the engine reads it, or an error that names the invalid item.
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

// CheckDecoration checks a decorator's response, as [Check] does for a composite.
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

// declaredBy returns the kinds that have a group, and the others.
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

// Finalize does what [Sync] does, for a parent that is being deleted or is no longer selected.
func Finalize(ctx context.Context, f hook.SyncFunc, file string, kinds ...string) (*Answer, error) {
	request, declared, err := read(file, kinds, true)
	if err != nil {
		return nil, err
	}
	return ask(ctx, hook.Composite{Finalize: f}, compositev1.CompositeHookService_Finalize_FullMethodName, request,
		declared)
}

// Decorate calls a decorator's function for the objects in a file and checks the response, as
// [Sync] does. The first document is the object to decorate; the others are its attachments.
func Decorate(ctx context.Context, f hook.DecorateFunc, file string, kinds ...string) (*Answer, error) {
	request, declared, err := read(file, kinds, false)
	if err != nil {
		return nil, err
	}
	return ask(ctx, hook.Decorator{Sync: f}, decoratorv1.DecoratorHookService_Sync_FullMethodName, request, declared)
}

// read makes a request from a file, and returns it with the declared kinds.
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

// load returns the objects in a file. It returns an error if there is none.
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

// ask calls the function and checks the response.
func ask(ctx context.Context, h registrar, method string, request *hook.SyncRequest, declared kinds) (*Answer, error) {
	v := &validator{field: "children", namespace: request.Parent.Namespace, declared: declared}
	return v.ask(ctx, h, method, encodeRequest(method, request))
}

// ask calls the function with a request message and checks the response.
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
