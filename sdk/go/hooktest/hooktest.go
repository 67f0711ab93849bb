// Package hooktest calls a hook's functions as the engine would, without an engine, a cluster or a server:
//
//	answer, err := hooktest.Sync(ctx, sync, "testdata/website.yaml", "Deployment.apps/v1")
//
// The file's first document is the parent, all others are what is observed of its children. The answer is written as a server writes it, so
// that a mistake in it shows in the test. Its data are the test's own files. Functions are safe for concurrent use.
package hooktest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"google.golang.org/protobuf/proto"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Answer is an answer as the engine reads it.
type Answer struct {
	// Children are the desired objects (a decorator's attachments) in the hook's order, decoded; integers are json.Number.
	Children []map[string]any
	// Status is the status, decoded; nil where the hook gave none.
	Status map[string]any
	// Message is the whole response: a CompositeHookServiceSyncResponse, for example.
	Message proto.Message
}

// Sync asks a composite's function about the objects of a file. Kinds ("Pod.v1") are those that the controller declares beside those that
// the file has objects of. The error is the function's own, or says what is wrong with the file or the answer.
func Sync(ctx context.Context, f hook.SyncFunc, file string, kinds ...string) (*Answer, error) {
	request, err := read(file, kinds, false)
	if err != nil {
		return nil, err
	}
	return ask(ctx, hook.Composite{Sync: f}, hookv1.CompositeHookService_Sync_FullMethodName, request)
}

// Finalize asks as Sync does, about a parent that is being deleted.
func Finalize(ctx context.Context, f hook.SyncFunc, file string, kinds ...string) (*Answer, error) {
	request, err := read(file, kinds, true)
	if err != nil {
		return nil, err
	}
	return ask(ctx, hook.Composite{Finalize: f}, hookv1.CompositeHookService_Finalize_FullMethodName, request)
}

// Decorate asks a decorator's function about the objects of a file: the first is the one to decorate, the others are its attachments.
func Decorate(ctx context.Context, f hook.DecorateFunc, file string, kinds ...string) (*Answer, error) {
	request, err := read(file, kinds, false)
	if err != nil {
		return nil, err
	}
	return ask(ctx, hook.Decorator{Sync: f}, hookv1.DecoratorHookService_Sync_FullMethodName, request)
}

// read makes a request of a file.
func read(file string, kinds []string, finalizing bool) (*hook.SyncRequest, error) {
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
	request, err := hook.NewSyncRequest(objects[0], objects[1:], kinds...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	request.Finalizing = finalizing
	return request, nil
}

// ask calls the function and reads what it says.
func ask(ctx context.Context, h hook.Hook, method string, request *hook.SyncRequest) (*Answer, error) {
	response, err := hook.Ask(ctx, h, method, request)
	if err != nil {
		return nil, err
	}
	answer := &Answer{Message: response}
	var status []byte
	var children []*hookv1.DesiredObject
	switch r := response.(type) {
	case *hookv1.CompositeHookServiceSyncResponse:
		status, children = r.Status, r.GetChildren()
	case *hookv1.CompositeHookServiceFinalizeResponse:
		status, children = r.Status, r.GetChildren()
	case *hookv1.DecoratorHookServiceSyncResponse:
		status, children = r.Status, r.GetAttachments()
	}
	if status != nil {
		if err := decode(status, &answer.Status); err != nil {
			return nil, fmt.Errorf("status: %w", err)
		}
	}
	for i, c := range children {
		var child map[string]any
		if err := decode(c.GetBody(), &child); err != nil {
			return nil, fmt.Errorf("children[%d]: %w", i, err)
		}
		answer.Children = append(answer.Children, child)
	}
	return answer, nil
}

func decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into)
}
