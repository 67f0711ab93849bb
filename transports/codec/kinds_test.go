package codec_test

import (
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/transports/codec"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// TestEveryOperationHasAMethod: for each kind of controller and each of its operations the contract
// has a method, and questions are written in the method's own messages.
func TestEveryOperationHasAMethod(t *testing.T) {
	parent, err := object.Decode([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range hook.Descriptors() {
		for _, op := range k.Operations {
			method := codec.Method(k.ControllerKind, op)
			found, err := protoregistry.GlobalFiles.FindDescriptorByName(name(method))
			if err != nil {
				t.Errorf("%s: %v", method, err)
				continue
			}
			of := found.(protoreflect.MethodDescriptor)
			call := codec.New(&hook.Question{Kind: k.ControllerKind, Op: op, Controller: parent, Parent: parent}, nil)
			request := call.Request.ProtoReflect().Descriptor()
			response := call.Response.ProtoReflect().Descriptor()
			if request != of.Input() || response != of.Output() {
				t.Errorf("%s: written as %s, %s", method, request.FullName(), response.FullName())
			}
			if op != hook.Customize && request.Fields().ByName(protoreflect.Name(k.ChildrenField)) == nil {
				t.Errorf("%s has no field %q", request.FullName(), k.ChildrenField)
			}
			if request.Fields().ByName(protoreflect.Name(k.ParentField)) == nil {
				t.Errorf("%s has no field %q", request.FullName(), k.ParentField)
			}
		}
	}
}

// name is the name of a method's descriptor: /package.Service/Method is package.Service.Method.
func name(method string) protoreflect.FullName {
	path := []byte(method[1:])
	for i := range path {
		if path[i] == '/' {
			path[i] = '.'
		}
	}
	return protoreflect.FullName(path)
}
