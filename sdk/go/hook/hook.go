// Package hook serves hooks that are written in Go. A hook is a function from the observed state of
// one parent to its desired state, and Main is a complete program around it:
//
//	func sync(ctx context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) { … }
//
//	func main() { hook.Main(hook.Composite{Sync: sync}) }
//
// The function is level-triggered: Hookloop may call it again at any time with the same request,
// and it should return the same response. It is called concurrently, for different parents. Its
// tests need neither an API server nor a gRPC server: they call it with the result of
// NewSyncRequest.
//
// The package knows the engine only by the gRPC contract. Its data comes from the engine's
// requests. Table tests cover the translation, and tests over loopback connections the server.
package hook

import (
	"context"
	"slices"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	"google.golang.org/grpc"
)

// SyncFunc returns the desired state of one parent. As Finalize it is called while the parent is
// finalized.
type SyncFunc func(ctx context.Context, req *SyncRequest) (*SyncResponse, error)

// DecorateFunc returns the additions to one object that someone else owns.
type DecorateFunc func(ctx context.Context, req *SyncRequest) (*DecorateResponse, error)

// CustomizeFunc returns the rules that select the related objects of one parent.
type CustomizeFunc func(ctx context.Context, req *CustomizeRequest) (*CustomizeResponse, error)

// Hook is a set of functions that Serve and Attach serve: a Composite, a Decorator or a Mapper.
// [Named] gives one a name, for programs with several hooks of one kind.
type Hook interface {
	add(c *catalog, name string) error
}

// Composite is the hook of a CompositeController. A function that the controller's spec does not
// declare may be nil; a call of a nil function gets UNIMPLEMENTED. Sync and Finalize may be the
// same function.
type Composite struct {
	Sync, Finalize SyncFunc
	Customize      CustomizeFunc
}

// Decorator is the hook of a DecoratorController. Functions may be nil, as in Composite.
type Decorator struct {
	Sync, Finalize DecorateFunc
	Customize      CustomizeFunc
}

// Register registers the hook's service, with a method for each function, on a gRPC server of the
// program, or with an engine in the same process (server.Config.Hooks). Unlike Serve, a server of
// the program has no streams and does not recover panics.
func (c Composite) Register(r grpc.ServiceRegistrar) {
	s := composite{hooks: only("composite", c)}
	r.RegisterService(served(compositev1.CompositeHookService_ServiceDesc, s.methods(c)), s)
}

// Register registers the hook's service, as Composite's does.
func (d Decorator) Register(r grpc.ServiceRegistrar) {
	s := decorator{hooks: only("decorator", d)}
	r.RegisterService(served(decoratorv1.DecoratorHookService_ServiceDesc, s.methods(d)), s)
}

// served returns the description of a service without the methods that have no function.
func served(service grpc.ServiceDesc, functions methods) *grpc.ServiceDesc {
	service.Methods = slices.DeleteFunc(slices.Clone(service.Methods), func(m grpc.MethodDesc) bool {
		return functions["/"+service.ServiceName+"/"+m.MethodName] == nil
	})
	return &service
}
