package verifystream

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// document is a JSON document within a message. It is compared as a whole.
type document struct{ content any }

// jsonFields are the fields with bytes that are JSON.
var jsonFields = map[protoreflect.FullName]bool{
	"hookloop.hook.v1.DesiredObject.body":           true,
	"hookloop.composite.v1.SyncResponse.status":     true,
	"hookloop.composite.v1.FinalizeResponse.status": true,
	"hookloop.decorator.v1.SyncResponse.status":     true,
	"hookloop.decorator.v1.FinalizeResponse.status": true,
}

// render returns a message as a tree in the JSON format of protobuf, in which bytes are
// hexadecimal or JSON, and all scalar fields are present.
func render(m protoreflect.Message) any {
	switch one := m.Interface().(type) {
	case *durationpb.Duration:
		return one.AsDuration().String()
	case *anypb.Any:
		return renderAny(one)
	}
	out := map[string]any{}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if field.HasPresence() && !m.Has(field) {
			continue
		}
		value := m.Get(field)
		switch {
		case field.IsMap():
			entries := map[string]any{}
			value.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				entries[key.String()] = scalar(field.MapValue(), value)
				return true
			})
			out[field.JSONName()] = entries
		case field.IsList():
			list := make([]any, value.List().Len())
			for n := range list {
				list[n] = scalar(field, value.List().Get(n))
			}
			out[field.JSONName()] = list
		default:
			out[field.JSONName()] = scalar(field, value)
		}
	}
	return out
}

func renderAny(detail *anypb.Any) any {
	m, err := detail.UnmarshalNew()
	if err != nil {
		return map[string]any{"@type": detail.GetTypeUrl(), "value": hex.EncodeToString(detail.GetValue())}
	}
	out := map[string]any{"@type": string(m.ProtoReflect().Descriptor().FullName())}
	if fields, ok := render(m.ProtoReflect()).(map[string]any); ok {
		for key, value := range fields {
			out[key] = value
		}
	}
	return out
}

func scalar(field protoreflect.FieldDescriptor, value protoreflect.Value) any {
	switch field.Kind() {
	case protoreflect.MessageKind:
		return render(value.Message())
	case protoreflect.EnumKind:
		if name := field.Enum().Values().ByNumber(value.Enum()); name != nil {
			return string(name.Name())
		}
		return json.Number(strconv.Itoa(int(value.Enum())))
	case protoreflect.BytesKind:
		if jsonFields[field.FullName()] {
			return jsonOf(value.Bytes())
		}
		return hex.EncodeToString(value.Bytes())
	case protoreflect.StringKind:
		return value.String()
	case protoreflect.BoolKind:
		return value.Bool()
	case protoreflect.Int32Kind:
		if field.FullName() == "google.rpc.Status.code" {
			return codeName(int32(value.Int())) //nolint:gosec // the field's type
		}
	}
	return json.Number(fmt.Sprint(value.Interface()))
}

// codeName returns the name of a status code, or its number.
func codeName(number int32) any {
	if name, found := code.Code_name[number]; found {
		return name
	}
	return json.Number(strconv.Itoa(int(number)))
}

// jsonOf decodes JSON. Invalid JSON becomes a text that no dialogue expects.
func jsonOf(data []byte) any {
	if !utf8.Valid(data) {
		return fmt.Sprintf("bytes that are not UTF-8: %x", data[:min(len(data), 64)])
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var content any
	if err := decoder.Decode(&content); err != nil {
		return fmt.Sprintf("bytes that are not JSON (%v): %s", err, data[:min(len(data), 64)])
	}
	if decoder.More() {
		return "JSON with more text after it"
	}
	return document{content}
}
