package codec

import (
	"errors"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	mapv1 "github.com/hookloop/hookloop/gen/hookloop/map/v1"
	"github.com/hookloop/hookloop/internal/protocol/session"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

func TestAPatchMayNotSetAndRemoveAKey(t *testing.T) {
	_, err := Answer(
		&decoratorv1.SyncResponse{
			Labels: &decoratorv1.KeyPatch{Set: map[string]string{"a": "b"}, Remove: []string{"a"}},
		})
	if err == nil || !strings.Contains(err.Error(), `labels: "a" is both set and removed`) {
		t.Errorf("got %v, want an error that names the label", err)
	}
}

// TestMapConditions rejects conditions in the responses of map hooks.
func TestMapConditions(t *testing.T) {
	details := &hookv1.ResponseDetails{Conditions: []*hookv1.Condition{{Type: "Ready"}}}
	for _, response := range []proto.Message{
		&mapv1.MapResponse{Details: details}, &mapv1.TombstoneResponse{Details: details},
		&mapv1.FinalizeResponse{Details: details},
	} {
		if _, err := Answer(response); err == nil ||
			!strings.Contains(err.Error(), "details.conditions has 1 conditions, expected none: the status of") {
			t.Errorf("%T: got %v, want an error that names the conditions", response, err)
		}
	}
}

// TestBombs refuses what unfolds inside of a message: JSON of a status, and details of a failure.
func TestBombs(t *testing.T) {
	status := []byte(`{"a":[` + strings.Repeat("{},", 1<<20) + "{}]}")
	if _, err := Answer(
		&compositev1.SyncResponse{Status: status},
	); err == nil ||
		!strings.Contains(err.Error(), "status: has too many values") {
		t.Errorf("a status: got %v, want a refusal", err)
	}
	info := &errdetails.ErrorInfo{Reason: "TooLate", Metadata: map[string]string{"a": strings.Repeat("x", maxDetailBytes)}}
	large, err := grpcstatus.New(codes.Internal, "no").WithDetails(info)
	if err != nil {
		t.Fatal(err)
	}
	small, err := grpcstatus.New(
		codes.Internal,
		"no",
	).WithDetails(
		&errdetails.ErrorInfo{Reason: "TooLate"},
		&errdetails.BadRequest{},
	)
	if err != nil {
		t.Fatal(err)
	}
	for s, want := range map[*grpcstatus.Status]string{large: "", small: "TooLate"} {
		if failure := Failure("sync", &hook.Question{Op: hook.Sync}, 0, s); failure.Reason != want {
			t.Errorf("%v: reason %q, want %q", s, failure.Reason, want)
		}
	}
}

// TestUnknownCodesHaveOneLabel maps codes that google.rpc.Code does not have to one label of
// metrics. A hook chooses the code, so each would be a series.
func TestUnknownCodesHaveOneLabel(t *testing.T) {
	for code, want := range map[int32]string{5: "NotFound", 16: "Unauthenticated", 17: "Unknown", 4711: "Unknown",
		-1: "Unknown"} {
		err := Failure("sync", &hook.Question{Op: hook.Sync}, 0,
			grpcstatus.FromProto(&statuspb.Status{Code: code, Message: "no"}))
		var coded interface{ Code() string }
		if !errors.As(err, &coded) || coded.Code() != want {
			t.Errorf("code %d: got the label %v, want %s", code, coded, want)
		}
		if err.Kind != hook.Failed {
			t.Errorf("code %d: got kind %v, want %v", code, err.Kind, hook.Failed)
		}
	}
}

// TestDesiredObjectsAreDecodedOnce decodes two responses that share their list, then another list,
// and twice one that is invalid.
func TestDesiredObjectsAreDecodedOnce(t *testing.T) {
	objects := []*hookv1.DesiredObject{{Body: []byte("{}"), Ready: new(true)}, {Body: []byte("[]")}}
	derived := &session.Derived{}
	first, err := AnswerAgain(&compositev1.SyncResponse{Children: objects, Status: []byte(`{"a":1}`)}, derived)
	if err != nil {
		t.Fatal(err)
	}
	again, err := AnswerAgain(&compositev1.FinalizeResponse{Children: objects, Finalized: true}, derived)
	if err != nil || &again.Children[0] != &first.Children[0] || len(again.States) != 1 {
		t.Errorf("a second response with the list is %+v, %v, want the children of the first one", again, err)
	}
	if !again.Finalized || len(again.Status) > 0 {
		t.Errorf("a second response with the list is %+v, want its own other fields", again)
	}
	bad := []*hookv1.DesiredObject{{Encoding: 7}}
	derived = &session.Derived{}
	for range 2 {
		if _, err := AnswerAgain(&decoratorv1.SyncResponse{Attachments: bad}, derived); err == nil ||
			!strings.HasPrefix(err.Error(), "attachments[0]: encoding is 7") {
			t.Errorf("got %v, want an error about the encoding", err)
		}
	}
}
