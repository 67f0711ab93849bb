package integration

import (
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	"github.com/hookloop/hookloop/internal/protocol/grpctest"
	"github.com/hookloop/hookloop/test/kit"
	"google.golang.org/grpc"
)

// listenOnSocket listens on a socket in the engine's folder, and returns its address.
func listenOnSocket(t *testing.T, name string) (net.Listener, string) {
	t.Helper()
	path := filepath.Join(shared.sockets, name)
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	return listener, "unix://" + path
}

// TestHookAtAUnixSocket runs a parent from creation to deletion, with a hook at a unix socket.
func TestHookAtAUnixSocket(t *testing.T) {
	k := start(t)
	listener, address := listenOnSocket(t, k.Name+"-grpc")
	server := grpc.NewServer()
	compositev1.RegisterCompositeHookServiceServer(server, grpcMirror{})
	grpctest.ServeOn(t, listener, server)
	life(t, k, "grpc:"+address, "HookRejected")
}

// TestWebhookAtAUnixSocket asks a webhook at a unix socket.
func TestWebhookAtAUnixSocket(t *testing.T) {
	k := start(t)
	listener, address := listenOnSocket(t, k.Name+"-webhook")
	hook := k.Hook(well)
	server := &http.Server{Handler: hook}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the hook ended: %v", err)
		}
	})
	run(t, k, kit.Composite{Sync: address})
	k.Object("Web", "web").Set("spec.text", "one").Apply()
	await(k, "v1/ConfigMap", "web", "data.text", "one")
	k.AwaitSynced("Web", "web")
}

// TestSocketElsewhere declares a hook at a socket outside of the engine's folder. The controller
// names the flag.
func TestSocketElsewhere(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	for _, path := range []string{"/run/containerd/containerd.sock", shared.sockets + "/../a.sock"} {
		k.Declare(kit.Composite{Parent: "webs", Sync: "unix://" + path})
		k.AwaitReady(v1alpha1.ReasonInvalidSpec)
		ready := kit.Condition(k.Get(kit.CompositeController, k.Name), v1alpha1.ConditionReady)
		message, _ := ready["message"].(string)
		if !strings.Contains(message, "--hook-socket-folders") && !strings.Contains(message, `without ".."`) {
			t.Errorf("%s: got the message %q", path, message)
		}
	}
}
