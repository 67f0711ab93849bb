// Package hook runs hooks that are written in Go. You write one function, which receives the
// observed state of a parent object and returns the objects that should exist for it. [Main] makes
// a program of this function:
//
//	func sync(_ context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
//		page := map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
//			"metadata": map[string]any{"name": req.Parent.Name},
//			"data":     map[string]any{"greeting": "hello"}}
//		return &hook.SyncResponse{Children: []hook.Child{{Object: page}}}, nil
//	}
//
//	func main() { hook.Main(hook.Composite{Sync: sync}) }
//
// Use [Composite], [Decorator] or [Mapper], after the kind of the controller that will call the
// hook. [Parent], [ChildrenOf] and [Related] decode the objects of a request into Go types. To read
// flags yourself, call [Serve] instead of Main; to connect to a gateway instead of listening, call
// [Attach].
//
// Hookloop may call the function at any time, also with a request that it has seen before. The
// function should then return the same response. It is called in several goroutines, for different
// parents. An error is shown on the parent and retried with backoff; use [Reject] and [RetryAfter]
// to choose something else.
//
// To test a hook, make a request with [NewSyncRequest], call the function, and check the response
// with package hooktest. This needs neither a server nor a cluster.
package hook

import (
	"context"
	"slices"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	"google.golang.org/grpc"
)

// SyncFunc receives the observed state of one parent and returns the desired state. Hookloop calls
// [Composite].Finalize, which has this type too, while the parent is being deleted, or after it is
// no longer selected.
type SyncFunc func(ctx context.Context, req *SyncRequest) (*SyncResponse, error)

// DecorateFunc returns what to add to an object that someone else owns: labels, annotations, a
// status and attachments.
type DecorateFunc func(ctx context.Context, req *SyncRequest) (*DecorateResponse, error)

// CustomizeFunc returns rules that select related objects. Hookloop adds these objects to each
// request about the parent.
type CustomizeFunc func(ctx context.Context, req *CustomizeRequest) (*CustomizeResponse, error)

// Hook is implemented by [Composite], [Decorator] and [Mapper]. Pass hooks to [Main], [Serve] or
// [Attach]. If a program serves several hooks of the same type, give them names with [Named].
type Hook interface {
	add(c *catalog, name string) error
}

// Composite holds the functions for a CompositeController. Set a field for each hook that the
// controller's spec declares and leave the others nil: Hookloop gets UNIMPLEMENTED when it calls a
// nil function. Sync and Finalize may be the same function; [SyncRequest].Finalizing tells them
// apart.
type Composite struct {
	Sync, Finalize SyncFunc
	Customize      CustomizeFunc
}

// Decorator holds the functions for a DecoratorController. As in [Composite], functions may be nil.
type Decorator struct {
	Sync, Finalize DecorateFunc
	Customize      CustomizeFunc
}

// Register adds the hook to a gRPC server that you run yourself, or to an engine in the same
// process (server.Config.Hooks). Only methods with a function are registered. A server of your own
// does not recover panics and does not accept streams; use [Serve] if you want both.
func (c Composite) Register(r grpc.ServiceRegistrar) {
	s := composite{hooks: only("composite", c)}
	r.RegisterService(served(compositev1.CompositeHookService_ServiceDesc, s.methods(c)), s)
}

// Register adds the hook to a gRPC server that you run yourself, as [Composite.Register] does.
func (d Decorator) Register(r grpc.ServiceRegistrar) {
	s := decorator{hooks: only("decorator", d)}
	r.RegisterService(served(decoratorv1.DecoratorHookService_ServiceDesc, s.methods(d)), s)
}

// served returns a copy of a service's description that lists only the methods with a function.
func served(service grpc.ServiceDesc, functions methods) *grpc.ServiceDesc {
	service.Methods = slices.DeleteFunc(slices.Clone(service.Methods), func(m grpc.MethodDesc) bool {
		return functions["/"+service.ServiceName+"/"+m.MethodName] == nil
	})
	return &service
}
