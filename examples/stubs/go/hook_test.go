package main

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// request is about a Website.
func request(spec, deployment string) *compositev1.SyncRequest {
	r := &compositev1.SyncRequest{Parent: &hookv1.ObservedObject{
		Name:      "shop",
		Namespace: "web",
		Body:      []byte(`{"metadata":{"name":"shop"},"spec":` + spec + `}`),
	}}
	group := &hookv1.ObjectGroup{ApiVersion: "apps/v1", Kind: "Deployment"}
	if deployment != "" {
		group.Objects = []*hookv1.ObservedObject{{Name: "shop", Body: []byte(deployment)}}
	}
	r.Children = append(r.Children, group)
	return r
}

func TestAWebsiteIsReadyWhenItsServersAre(t *testing.T) {
	for deployment, want := range map[string]string{
		"":                               "Starting: 0 of 2 servers are ready",
		`{}`:                             "Starting: 0 of 2 servers are ready",
		`{"status":{"readyReplicas":1}}`: "Starting: 1 of 2 servers are ready",
		`{"status":{"readyReplicas":2}}`: "AllUp: 2 of 2 servers are ready",
	} {
		answer, err := website{}.Sync(t.Context(), request(`{"replicas":2}`, deployment))
		if err != nil {
			t.Fatal(err)
		}
		ready := answer.GetDetails().GetConditions()[0]
		if got := ready.GetReason() + ": " + ready.GetMessage(); got != want {
			t.Errorf("Deployment %s: got %q, want %q", deployment, got, want)
		}
	}
}

func TestAWebsiteHasThreeChildren(t *testing.T) {
	answer, err := website{}.Sync(t.Context(), request(`{"replicas":2,"unreachableSeconds":9007199254740993}`, ""))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, child := range answer.GetChildren() {
		var o struct{ Kind string }
		if err := json.Unmarshal(child.GetBody(), &o); err != nil {
			t.Fatal(err)
		}
		kind := o.Kind
		for _, d := range child.GetDependsOn() {
			kind += " after " + d.GetKind()
		}
		got = append(got, kind)
	}
	if text := strings.Join(got, ", "); text != "ConfigMap, Deployment after ConfigMap, Service after Deployment" {
		t.Errorf("got %s", text)
	}
	if !strings.Contains(string(answer.GetChildren()[1].GetBody()), "9007199254740993") {
		t.Error("the large integer has lost digits")
	}
}

func TestErrors(t *testing.T) {
	for spec, want := range map[string]string{
		`{"image":"a b"}`:     "InvalidArgument InvalidImage",
		`{"image":"pending"}`: "Unavailable ImagePending",
		`{"replicas":"two"}`:  "InvalidArgument InvalidWebsite",
	} {
		_, err := website{}.Sync(t.Context(), request(spec, ""))
		got := status.Convert(err)
		text := got.Code().String()
		for _, detail := range got.Details() {
			if info, ok := detail.(*errdetails.ErrorInfo); ok {
				text += " " + info.GetReason()
			}
		}
		if text != want {
			t.Errorf("%s: got %s (%v), want %s", spec, text, err, want)
		}
	}
	if got := status.Code(failure(codes.Internal, "A", "b", 0)); got != codes.Internal {
		t.Errorf("got %s", got)
	}
}

// TestStubsAlone checks that the hook needs no other package of Hookloop.
func TestStubsAlone(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	stubs := 0
	for path := range strings.FieldsSeq(string(out)) {
		switch {
		case strings.HasPrefix(path, "github.com/hookloop/hookloop/gen/"):
			stubs++
		case strings.HasPrefix(path, "github.com/hookloop/"):
			t.Errorf("the hook links %s, expected the stubs alone", path)
		}
	}
	if stubs == 0 {
		t.Error("the hook does not link the stubs")
	}
}
