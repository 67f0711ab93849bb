// Package hook is what the author of a hook in Go imports: a hook is a function from the observed
// state of one parent to its desired state, and Main serves it.
//
//	func sync(ctx context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) { … }
//
//	func main() { hook.Main(hook.Composite{Sync: sync}) }
//
// The function is level-triggered: it may be asked the same question again at any time and should
// answer it the same way. It is called concurrently, for different parents. It needs no client of
// the API server and no server to be tested: call it with what NewSyncRequest makes.
//
// The package never imports the engine; what it knows of it is the contract, package
// hookloop.hook.v1 of proto. Its data comes from requests of the engine. Table tests cover the
// translation, and tests over a loopback connection the server.
package hook

import (
	"context"
	"slices"

	compositev1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/decorator/v1"
	"google.golang.org/grpc"
)

// SyncFunc says which children a parent should have. As Finalize it is asked while the parent is
// being deleted.
type SyncFunc func(ctx context.Context, req *SyncRequest) (*SyncResponse, error)

// DecorateFunc says what should be added to an object that someone else owns.
type DecorateFunc func(ctx context.Context, req *SyncRequest) (*DecorateResponse, error)

// CustomizeFunc says which other objects the questions about a parent should show.
type CustomizeFunc func(ctx context.Context, req *CustomizeRequest) (*CustomizeResponse, error)

// Hook is a set of functions that a server can serve: a Composite or a Decorator.
type Hook interface {
	register(grpc.ServiceRegistrar) (service string)
	methods() methods
}

// Composite is the hook of a CompositeController. Functions that the controller's spec does not
// declare may be nil; asking for one that is nil is answered with UNIMPLEMENTED. Sync and Finalize
// may be the same function.
type Composite struct {
	Sync, Finalize SyncFunc
	Customize      CustomizeFunc
}

// Decorator is the hook of a DecoratorController. Functions may be nil as in Composite.
type Decorator struct {
	Sync, Finalize DecorateFunc
	Customize      CustomizeFunc
}

// Register registers the hook's service, with the methods that have a function, on a gRPC server of
// your own or with an engine in the same process (server.Config.Hooks). A server of your own has
// neither streams nor recovery from panics; Serve has both.
func (c Composite) Register(r grpc.ServiceRegistrar) {
	r.RegisterService(served(compositev1.CompositeHookService_ServiceDesc, c.methods()), composite{hook: c})
}

// Register registers the hook's service, as Composite's does.
func (d Decorator) Register(r grpc.ServiceRegistrar) {
	r.RegisterService(served(decoratorv1.DecoratorHookService_ServiceDesc, d.methods()), decorator{hook: d})
}

// served describes a service without the methods that have no function.
func served(service grpc.ServiceDesc, functions methods) *grpc.ServiceDesc {
	service.Methods = slices.DeleteFunc(slices.Clone(service.Methods), func(m grpc.MethodDesc) bool {
		return functions["/"+service.ServiceName+"/"+m.MethodName] == nil
	})
	return &service
}

func (c Composite) register(r grpc.ServiceRegistrar) string {
	compositev1.RegisterCompositeHookServiceServer(r, composite{hook: c})
	return compositev1.CompositeHookService_ServiceDesc.ServiceName
}

func (d Decorator) register(r grpc.ServiceRegistrar) string {
	decoratorv1.RegisterDecoratorHookServiceServer(r, decorator{hook: d})
	return decoratorv1.DecoratorHookService_ServiceDesc.ServiceName
}
