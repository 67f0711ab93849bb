package integration

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/internal/protocol/grpctest"
	"github.com/hookloop/hookloop/test/kit"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// grpcMirror is the mirror over gRPC. It refuses a parent with spec.refuse.
type grpcMirror struct {
	compositev1.UnimplementedCompositeHookServiceServer
}

// mirrored holds the fields of a parent that the mirror reads.
type mirrored struct {
	Spec struct {
		Refuse  string       `json:"refuse"`
		Answer  mirrorAnswer `json:"answer"`
		Finally mirrorAnswer `json:"finally"`
	} `json:"spec"`
}

// mirrorAnswer is an answer in a parent's spec.
type mirrorAnswer struct {
	Status    json.RawMessage   `json:"status"`
	Children  []json.RawMessage `json:"children"`
	Finalized bool              `json:"finalized"`
}

func (grpcMirror) Sync(
	_ context.Context,
	r *compositev1.SyncRequest,
) (*compositev1.SyncResponse, error) {
	var parent mirrored
	if err := json.Unmarshal(r.GetParent().GetBody(), &parent); err != nil {
		return nil, err
	}
	if parent.Spec.Refuse != "" {
		return nil, status.Error(codes.InvalidArgument, parent.Spec.Refuse)
	}
	answer := parent.Spec.Answer
	return &compositev1.SyncResponse{Status: answer.Status, Children: desired(answer.Children)}, nil
}

func (grpcMirror) Finalize(
	_ context.Context, r *compositev1.FinalizeRequest,
) (*compositev1.FinalizeResponse, error) {
	var parent mirrored
	if err := json.Unmarshal(r.GetParent().GetBody(), &parent); err != nil {
		return nil, err
	}
	answer := parent.Spec.Finally
	return &compositev1.FinalizeResponse{
		Status: answer.Status, Children: desired(answer.Children), Finalized: answer.Finalized,
	}, nil
}

func desired(children []json.RawMessage) []*hookv1.DesiredObject {
	var objects []*hookv1.DesiredObject
	for _, c := range children {
		objects = append(objects, &hookv1.DesiredObject{Body: c})
	}
	return objects
}

// serveGRPC serves the mirror until the test ends, and returns its address.
func serveGRPC(t *testing.T) string {
	t.Helper()
	server := grpc.NewServer()
	compositev1.RegisterCompositeHookServiceServer(server, grpcMirror{})
	return "grpc:" + grpctest.Serve(t, server)
}

// TestHookOverGRPC runs a parent from creation to deletion with a hook over unary gRPC.
func TestHookOverGRPC(t *testing.T) {
	k := start(t)
	life(t, k, serveGRPC(t), "HookRejected")
}

// TestHookOverStream does the same with a hook over a stream.
func TestHookOverStream(t *testing.T) {
	k := start(t)
	life(t, k, "stream:"+mirrorProcess(k, "").address, "TooLate")
}

// life runs a parent from creation to deletion. refused is the reason if the hook refuses.
func life(t *testing.T, k *kit.Kit, hook, refused string) {
	t.Helper()
	k.CRD("Thing", "Namespaced")
	run(t, k,
		kit.Composite{Sync: hook, Finalize: hook, Children: []string{"v1/configmaps InPlace", "$GROUP/v1/things InPlace"}})
	k.Apply(parent("web", page("page", "text: one"),
		"{apiVersion: $GROUP/v1, kind: Thing, metadata: {name: big}, spec: {number: 9007199254740993}}"))
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	await(k, "Thing", "big", "spec.number", "9007199254740993")
	awaitSync(k, "web")

	k.Patch("Web", "web", "spec: {refuse: it is too late}")
	k.AwaitFault("Web", "web", refused, "it is too late")
	k.Patch("Web", "web", "spec: {refuse: null, answer: {children: ["+page("page", "text: two")+"]}}")
	await(k, "v1/ConfigMap", "page", "data.text", "two")
	await(k, "Thing", "big", "metadata.name", "")
	k.AwaitSynced("Web", "web")

	k.Delete("Web", "web")
	await(k, "v1/ConfigMap", "page", "metadata.name", "")
	k.Patch("Web", "web", "spec: {finally: {finalized: true}}")
	k.Eventually("the Web is gone", func() error {
		if k.Find("Web", "web") != nil {
			return errors.New("it is there")
		}
		return nil
	})
}

// TestGRPCHookIsDown expects the address of a missing hook in the message.
func TestGRPCHookIsDown(t *testing.T) {
	k := start(t)
	run(t, k, kit.Composite{Sync: "grpc:127.0.0.1:1"})
	k.Apply(parent("web"))
	k.AwaitFault("Web", "web", "HookUnreachable", "127.0.0.1:1")
	k.AwaitReady("HookUnreachable")
}
