package methods_test

import (
	"slices"
	"testing"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/internal/protocol/methods"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// TestEveryHookMethodHasItsFields compares the fields that are found by Go type with those of the
// contract by name.
func TestEveryHookMethodHasItsFields(t *testing.T) {
	names := slices.Sorted(methods.All())
	if len(names) != 10 {
		t.Errorf("hooks implement %d methods, expected 10: %q", len(names), names)
	}
	for _, name := range names {
		m := methods.Find(name)
		request := m.NewRequest()
		f := m.Fields(request)
		*f.Controller = &hookv1.ObservedObject{Name: "a controller"}
		*f.Parent = &hookv1.ObservedObject{Name: "a parent"}
		want := map[protoreflect.Name]bool{"controller": true, "parent": true}
		if request.ProtoReflect().Descriptor().Fields().ByName("object") != nil {
			want = map[protoreflect.Name]bool{"controller": true, "object": true}
		}
		if f.Input != nil {
			*f.Input = &hookv1.ObservedObject{Name: "an input"}
			want["input"] = true
		}
		if f.MapKey != nil {
			*f.MapKey = "a key"
			want["map_key"] = true
		}
		if f.Children != nil {
			*f.Children = []*hookv1.ObjectGroup{{}}
			want[childrenField(request)] = true
		}
		if f.Related != nil {
			*f.Related = []*hookv1.RelatedGroup{{}}
			want["related"] = true
		}
		fields := request.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			field := fields.Get(i)
			set := request.ProtoReflect().Has(field)
			if set != want[field.Name()] || !set && holdsObjects(field) {
				t.Errorf("%s: field %s of the request is found = %v, expected %v",
					name, field.Name(), set, want[field.Name()])
			}
		}
		response := m.NewResponse()
		desired, fieldName := m.Desired(response)
		if desired == nil {
			continue
		}
		*desired = []*hookv1.DesiredObject{{}}
		field := response.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(fieldName))
		if field == nil || !response.ProtoReflect().Has(field) {
			t.Errorf("%s: the response has no objects in its field %q", name, fieldName)
		}
	}
}

// childrenField returns the name of the request's field with observed objects.
func childrenField(request proto.Message) protoreflect.Name {
	for _, name := range []protoreflect.Name{"attachments", "outputs"} {
		if request.ProtoReflect().Descriptor().Fields().ByName(name) != nil {
			return name
		}
	}
	return "children"
}

// holdsObjects reports whether a field has objects of the cluster.
func holdsObjects(f protoreflect.FieldDescriptor) bool {
	if f.Message() == nil {
		return false
	}
	switch f.Message().Name() {
	case "ObservedObject", "ObjectGroup", "RelatedGroup":
		return true
	}
	return false
}

// TestEveryServiceOfHooksIsFound asks the registry, so that a service with another name is noticed.
func TestEveryServiceOfHooksIsFound(t *testing.T) {
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				m := service.Methods().Get(j)
				asks := m.Input().Fields().ByName("controller") != nil
				name := "/" + string(service.FullName()) + "/" + string(m.Name())
				if found := methods.Find(name) != nil; found != asks {
					t.Errorf("Find(%q) finds it = %v, expected %v", name, found, asks)
				}
			}
		}
		return true
	})
	if methods.Find("/grpc.health.v1.Health/Check") != nil {
		t.Error("Find finds the health service")
	}
}

// TestFieldsNeedsTheMethodsType: a request of another method would be read at wrong places.
func TestFieldsNeedsTheMethodsType(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Fields accepts the request of another method")
		}
	}()
	methods.Find("/hookloop.map.v1.MapHookService/Map").Fields(
		methods.Find("/hookloop.composite.v1.CompositeHookService/Sync").NewRequest())
}
