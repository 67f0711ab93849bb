package session

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// TestStreamsCarryEveryHookMethod: each method of each service of hooks in the contract has its
// places in requests and responses.
func TestStreamsCarryEveryHookMethod(t *testing.T) {
	found := 0
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			if !strings.HasPrefix(string(service.FullName()), "hookloop.") || !isHookService(service) {
				continue
			}
			for j := range service.Methods().Len() {
				found++
				name := "/" + string(service.FullName()) + "/" + string(service.Methods().Get(j).Name())
				if methods[name] == nil {
					t.Errorf("%s has no entry in methods", name)
				}
			}
		}
		return true
	})
	if found != len(methods) {
		t.Errorf("the contract has %d methods of hooks, streams carry %d", found, len(methods))
	}
}

// isHookService reports whether a service is implemented by hooks and called once per question.
func isHookService(service protoreflect.ServiceDescriptor) bool {
	for i := range service.Methods().Len() {
		if service.Methods().Get(i).IsStreamingClient() {
			return false
		}
	}
	return strings.HasSuffix(string(service.Name()), "HookService")
}
