// Command beside has a service of generated stubs beside a hook of the Go SDK.
package main

import (
	"context"
	"fmt"

	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"google.golang.org/grpc"
)

type stubs struct {
	decoratorv1.UnimplementedDecoratorHookServiceServer
}

func main() {
	server := grpc.NewServer()
	decoratorv1.RegisterDecoratorHookServiceServer(server, stubs{})
	composite := hook.Composite{Sync: func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) {
		return &hook.SyncResponse{}, nil
	}}
	composite.Register(server)
	fmt.Println(len(server.GetServiceInfo()), "services")
}
