package verifystream

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	_ "github.com/hookloop/hookloop/gen/hookloop/composite/v1" // registers the methods
	"google.golang.org/genproto/googleapis/rpc/code"
	_ "google.golang.org/genproto/googleapis/rpc/errdetails" // registers the details of errors
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// compositeService is the service of the reference hook.
const compositeService = "/hookloop.composite.v1.CompositeHookService/"

// syncMethod is the method of a call that names none.
const syncMethod = "Sync"

// encoder makes messages of the trees in dialogues.
type encoder struct {
	objects map[string]*object
	// last returns the digest of the list in the last answer about a subject.
	last func(subject string) []byte
	// trigger is the ID of the last trigger.
	trigger uint64
}

// encode fills a message from a tree.
func (e encoder) encode(tree map[string]any, m proto.Message) error {
	converted, err := e.message(tree, m.ProtoReflect().Descriptor())
	if err != nil {
		return err
	}
	data, err := json.Marshal(converted)
	if err != nil {
		return err
	}
	return protojson.Unmarshal(data, m)
}

// message converts a tree to the JSON format of protobuf.
func (e encoder) message(tree map[string]any, d protoreflect.MessageDescriptor) (map[string]any, error) {
	tree = maps.Clone(tree)
	if d.FullName() == "hookloop.stream.v1.Call" {
		if err := e.call(tree); err != nil {
			return nil, err
		}
	}
	if d.FullName() == "hookloop.stream.v1.TriggerResult" && tree["id"] == "last" {
		tree["id"] = e.trigger
	}
	for key, value := range tree {
		field := d.Fields().ByJSONName(key)
		if field == nil {
			return nil, fmt.Errorf("%s has no field %q", d.FullName(), key)
		}
		converted, err := e.value(value, field)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		tree[key] = converted
	}
	return tree, nil
}

// call completes a Call: the method's full name, the envelope, and the digest "last".
func (e encoder) call(tree map[string]any) error {
	method, _ := tree["method"].(string)
	if method == "" {
		method = syncMethod
	}
	if !strings.HasPrefix(method, "/") {
		method = compositeService + method
	}
	tree["method"] = method
	if tree["desiredDigest"] == "last" {
		subject, _ := tree["subject"].(string)
		tree["desiredDigest"] = hex.EncodeToString(e.last(subject))
	}
	envelope, isTree := tree["envelope"].(map[string]any)
	if tree["envelope"] == nil && method == compositeService+syncMethod {
		envelope = map[string]any{}
		isTree = true
		envelope["children"] = []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	}
	if !isTree {
		return nil
	}
	input, err := messageType(method, protoreflect.MethodDescriptor.Input)
	if err != nil {
		return err
	}
	m := input.New().Interface()
	if err := e.encode(envelope, m); err != nil {
		return fmt.Errorf("envelope: %w", err)
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return err
	}
	tree["envelope"] = hex.EncodeToString(data)
	return nil
}

// value converts the value of a field.
func (e encoder) value(value any, field protoreflect.FieldDescriptor) (any, error) {
	if list, ok := value.([]any); ok && field.IsList() {
		out := make([]any, len(list))
		for i, one := range list {
			converted, err := e.one(one, field)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			out[i] = converted
		}
		return out, nil
	}
	return e.one(value, field)
}

func (e encoder) one(value any, field protoreflect.FieldDescriptor) (any, error) {
	text, isText := value.(string)
	switch {
	case field.IsMap():
		return value, nil
	case field.Kind() == protoreflect.MessageKind:
		if tree, ok := value.(map[string]any); ok {
			return e.message(tree, field.Message())
		}
		return value, nil // such as a Duration
	case field.FullName() == "google.rpc.Status.code" && isText:
		number, found := code.Code_value[text]
		if !found {
			return nil, fmt.Errorf("got %q, expected a code of google.rpc.Code", text)
		}
		return number, nil
	case field.Kind() == protoreflect.BytesKind && isText:
		data, err := e.bytes(text, string(field.Name()))
		return base64.StdEncoding.EncodeToString(data), err
	}
	return value, nil
}

// bytes returns the bytes of hexadecimal digits, or of the recorded object @NAME.
func (e encoder) bytes(text, field string) ([]byte, error) {
	if name, isObject := strings.CutPrefix(text, "@"); isObject {
		o := e.objects[name]
		if o == nil {
			return nil, fmt.Errorf("there is no recorded object %q", name)
		}
		if field == "hash" {
			return hex.DecodeString(o.Hash)
		}
		return o.data, nil
	}
	return hex.DecodeString(text)
}

// messageType returns the type of a method's request or response.
func messageType(
	method string, side func(protoreflect.MethodDescriptor) protoreflect.MessageDescriptor,
) (protoreflect.MessageType, error) {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return nil, fmt.Errorf("method %s: %w", method, err)
	}
	found, ok := d.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, fmt.Errorf("%s is no method", method)
	}
	return protoregistry.GlobalTypes.FindMessageByName(side(found).FullName())
}
