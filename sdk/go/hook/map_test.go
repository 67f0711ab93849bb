package hook_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	mapv1 "github.com/hookloop/hookloop/gen/hookloop/map/v1"
	"github.com/hookloop/hookloop/internal/protocol/session"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	corev1 "k8s.io/api/core/v1"
)

// A map hook is one function, called for each input. In a program, main is
// hook.Main(hook.Mapper{Map: copyLabels}).
func ExampleMapper() {
	copyTeam := func(_ context.Context, req *hook.MapRequest) (*hook.MapResponse, error) {
		input, err := hook.Input[corev1.Namespace](req)
		if err != nil {
			return nil, err
		}
		return &hook.MapResponse{Outputs: []hook.Child{{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"namespace": input.Name, "name": req.Parent.Name},
			"data":     map[string]any{"team": input.Labels["team"]},
		}}}}, nil
	}
	req, err := hook.NewMapRequest(
		map[string]any{"apiVersion": "example.com/v1", "kind": "Team", "metadata": map[string]any{"name": "team"}},
		map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
			"name": "shop", "labels": map[string]any{"team": "blue"},
		}},
		nil, "ConfigMap.v1",
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := copyTeam(context.Background(), req)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(req.MapKey, resp.Outputs[0].Object.(map[string]any)["data"])
	// Output: Namespace/shop map[team:blue]
}

// A tombstone function keeps some outputs of an input that is gone.
func ExampleKeep() {
	keepPrecious := func(_ context.Context, req *hook.TombstoneRequest) (*hook.TombstoneResponse, error) {
		var kept []hook.Object
		for _, output := range req.Outputs["ConfigMap.v1"] {
			o, err := hook.Decode[corev1.ConfigMap](output)
			if err != nil {
				return nil, err
			}
			if o.Labels["precious"] == "yes" {
				kept = append(kept, output)
			}
		}
		return hook.Keep(kept...), nil
	}
	output := func(name, precious string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"name": name, "labels": map[string]any{"precious": precious},
		}}
	}
	req, err := hook.NewTombstoneRequest(
		map[string]any{"apiVersion": "example.com/v1", "kind": "Team", "metadata": map[string]any{"name": "team"}},
		[]any{output("a", "yes"), output("b", "no")},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := keepPrecious(context.Background(), req)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(resp.Outputs), resp.Outputs[0].Name)
	// Output: 1 a
}

// mapHook answers with values of its requests.
func mapHook() hook.Mapper {
	outputs := func(_ context.Context, req *hook.MapRequest) (*hook.MapResponse, error) {
		name := "gone"
		if input, err := hook.Input[corev1.ConfigMap](req); err == nil {
			name = input.Name
		}
		return &hook.MapResponse{
			Outputs: []hook.Child{{Object: map[string]any{
				"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name}, "key": req.MapKey,
				"observed": len(req.Outputs["Secret.v1"]),
			}}},
			ResyncAfter: time.Minute, Finalized: req.Finalizing,
			Events: []hook.Event{{Reason: "Mapped", Message: req.MapKey}},
		}, nil
	}
	return hook.Mapper{
		Map: outputs, Finalize: outputs,
		Tombstone: func(_ context.Context, req *hook.TombstoneRequest) (*hook.TombstoneResponse, error) {
			resp := hook.Keep(req.Outputs["Secret.v1"]["one"])
			resp.ResyncAfter = time.Hour
			return resp, nil
		},
		Customize: func(_ context.Context, req *hook.CustomizeRequest) (*hook.CustomizeResponse, error) {
			return &hook.CustomizeResponse{Related: []hook.RelatedRule{
				{APIVersion: "v1", Resource: "secrets", Names: []string{req.Parent.Name}}}}, nil
		},
	}
}

func TestMapHook(t *testing.T) {
	connection, _ := start(t, hook.ServeOptions{}, mapHook())
	client := mapv1.NewMapHookServiceClient(connection)
	controller := message("metacontroller.k8s.io/v1alpha1", "MapController", "", "m")
	parent := message("example.com/v1", "Team", "shop", "hi")
	input := message("v1", "ConfigMap", "shop", "in")
	outputs := []*hookv1.ObjectGroup{{ApiVersion: "v1", Kind: "Secret", Objects: []*hookv1.ObservedObject{
		message("v1", "Secret", "shop", "one"), message("v1", "Secret", "shop", "two")}}}
	mapped, err := client.Map(t.Context(), &mapv1.MapRequest{
		Controller: controller, Parent: parent, MapKey: "ConfigMap/shop/in", Input: input, Outputs: outputs,
	})
	details := &hookv1.ResponseDetails{ResyncAfter: durationpb.New(time.Minute), Events: []*hookv1.Event{
		{Type: hookv1.EventType_EVENT_TYPE_NORMAL, Reason: "Mapped", Message: "ConfigMap/shop/in"}}}
	body := `{"apiVersion":"v1","key":"ConfigMap/shop/in","kind":"Secret","metadata":{"name":%q},"observed":2}`
	desired := func(body string) []*hookv1.DesiredObject {
		return []*hookv1.DesiredObject{{Encoding: hookv1.Encoding_ENCODING_JSON, Body: []byte(body)}}
	}
	meta := &hookv1.ResponseMeta{Features: []string{"events"}}
	want := &mapv1.MapResponse{Outputs: desired(fmt.Sprintf(body, "in")), Details: details, Meta: meta}
	if diff := cmp.Diff(want, mapped, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("map: %v (-want +got):\n%s", err, diff)
	}
	finalized, err := client.Finalize(t.Context(), &mapv1.FinalizeRequest{
		Controller: controller, Parent: parent, MapKey: "ConfigMap/shop/in", Outputs: outputs,
	})
	last := &mapv1.FinalizeResponse{
		Outputs: desired(fmt.Sprintf(body, "gone")), Details: details, Finalized: true, Meta: meta,
	}
	if diff := cmp.Diff(last, finalized, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("finalize: %v (-want +got):\n%s", err, diff)
	}
	kept, err := client.Tombstone(t.Context(), &mapv1.TombstoneRequest{
		Controller: controller, Parent: parent, MapKey: "ConfigMap/shop/in", Outputs: outputs,
	})
	keeps := &mapv1.TombstoneResponse{
		Outputs: desired(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"one","namespace":"shop"}}`),
		Details: &hookv1.ResponseDetails{ResyncAfter: durationpb.New(time.Hour)},
	}
	if diff := cmp.Diff(keeps, kept, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("tombstone: %v (-want +got):\n%s", err, diff)
	}
	rules, err := client.Customize(t.Context(), &mapv1.CustomizeRequest{Controller: controller, Parent: parent})
	if err != nil || len(rules.GetRelatedResources()) != 1 || rules.GetRelatedResources()[0].GetNames()[0] != "hi" {
		t.Errorf("customize: got %v, %v; want a rule with the parent's name", rules, err)
	}
}

// TestMapHooksOverStreams asks about two inputs of a parent, then about the outputs of one that is
// gone.
func TestMapHooksOverStreams(t *testing.T) {
	connection, _ := start(t, hook.ServeOptions{}, mapHook())
	engine := newEngine("a")
	e := hello(t, connection, engine)
	parent := []*thing{{"parent"}}
	ask := func(method, part string, envelope *mapv1.MapRequest, tombstone *mapv1.TombstoneRequest) *hookv1.DesiredObject {
		t.Helper()
		q := session.Question[*thing]{
			Subject: part, Method: method,
			Slots: []session.Slot[*thing]{
				{Slot: session.ControllerSlot, Objects: parent}, {Slot: session.ParentSlot, Objects: parent},
			},
		}
		if envelope != nil {
			q.Envelope = envelope
			q.Slots = append(q.Slots, session.Slot[*thing]{Slot: session.InputSlot, Objects: []*thing{{part}}})
		} else {
			q.Envelope = tombstone
			q.Slots = append(q.Slots,
				session.Slot[*thing]{Slot: uint32(session.OutputSlot(0)), Objects: []*thing{{"one"}, {"two"}}})
		}
		engine.Ask(q)
		e.send()
		m, err := e.stream.Recv()
		if err == nil {
			_, err = engine.Receive(m)
		}
		if err != nil {
			t.Fatal(err)
		}
		outcome := engine.Outcomes()[0]
		answer, ok := outcome.Response.(interface {
			GetOutputs() []*hookv1.DesiredObject
		})
		if !ok || len(answer.GetOutputs()) != 1 {
			t.Fatalf("got %+v, want one output", outcome)
		}
		return answer.GetOutputs()[0]
	}
	for _, part := range []string{"red", "blue"} {
		got := ask(mapv1.MapHookService_Map_FullMethodName, part, &mapv1.MapRequest{MapKey: part}, nil)
		if body := string(got.GetBody()); !strings.Contains(body, `"key":"`+part+`"`) ||
			!strings.Contains(body, `"name":"`+part+`"`) {
			t.Errorf("%s: output %s", part, body)
		}
	}
	got := ask(mapv1.MapHookService_Tombstone_FullMethodName, "red", nil, &mapv1.TombstoneRequest{
		MapKey: "red", Outputs: []*hookv1.ObjectGroup{{ApiVersion: "v1", Kind: "Secret"}},
	})
	if body := string(got.GetBody()); body != `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}}` {
		t.Errorf("kept output %s", body)
	}
}

// TestMapFunctionsThatAreNil are not served, and not in the Welcome.
func TestMapFunctionsThatAreNil(t *testing.T) {
	connection, _ := start(t, hook.ServeOptions{}, hook.Mapper{Map: mapHook().Map})
	client := mapv1.NewMapHookServiceClient(connection)
	_, tombstone := client.Tombstone(t.Context(), &mapv1.TombstoneRequest{})
	_, finalize := client.Finalize(t.Context(), &mapv1.FinalizeRequest{})
	_, customize := client.Customize(t.Context(), &mapv1.CustomizeRequest{})
	for _, err := range []error{tombstone, finalize, customize} {
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("got %v, want UNIMPLEMENTED", err)
		}
	}
	if _, err := client.Map(t.Context(), &mapv1.MapRequest{}); !strings.Contains(err.Error(), "controller: is missing") {
		t.Errorf("got %v, want an error that names the controller", err)
	}
}

// TestBadMapResponses names the field at fault.
func TestBadMapResponses(t *testing.T) {
	controller := message("metacontroller.k8s.io/v1alpha1", "MapController", "", "m")
	for want, m := range map[string]hook.Mapper{
		"Outputs[0]: Pod.v1 has no metadata.name": {
			Map: func(context.Context, *hook.MapRequest) (*hook.MapResponse, error) {
				return &hook.MapResponse{Outputs: []hook.Child{{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}}}, nil
			},
		},
		"ResyncAfter is -1s": {Map: func(context.Context, *hook.MapRequest) (*hook.MapResponse, error) {
			return &hook.MapResponse{ResyncAfter: -time.Second}, nil
		}},
		"neither a response nor an error": {Map: func(context.Context, *hook.MapRequest) (*hook.MapResponse, error) {
			return nil, nil
		}},
		"Outputs[0]: object without a kind": {
			Tombstone: func(context.Context, *hook.TombstoneRequest) (*hook.TombstoneResponse, error) {
				return hook.Keep(hook.Object{Name: "a"}), nil
			},
		},
	} {
		connection, _ := start(t, hook.ServeOptions{}, m)
		client := mapv1.NewMapHookServiceClient(connection)
		var err error
		if m.Map != nil {
			_, err = client.Map(t.Context(), &mapv1.MapRequest{Controller: controller, Parent: controller, Input: controller})
		} else {
			_, err = client.Tombstone(t.Context(), &mapv1.TombstoneRequest{Controller: controller, Parent: controller})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestMapRequests reads requests with their types.
func TestMapRequests(t *testing.T) {
	object := func(kind, name string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": name}}
	}
	req, err := hook.NewMapRequest(object("Team", "a"), nil, []any{object("Secret", "x")}, "Pod.v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hook.Input[corev1.Pod](req); err == nil || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("input: got %v, want that it is gone", err)
	}
	secrets, err := hook.OutputsOf[corev1.Secret](req.Outputs, "Secret.v1")
	if err != nil || secrets["x"].Namespace != "shop" {
		t.Errorf("outputs: got %v, %v", secrets, err)
	}
	if pods, err := hook.OutputsOf[corev1.Pod](req.Outputs, "Pod.v1"); err != nil || len(pods) != 0 {
		t.Errorf("a declared kind: got %v, %v", pods, err)
	}
	if _, err := hook.OutputsOf[corev1.Node](req.Outputs, "Node.v1"); err == nil ||
		!strings.Contains(err.Error(), "expected one of the declared kinds [Pod.v1, Secret.v1]") {
		t.Errorf("an undeclared kind: got %v", err)
	}
	req.Related = map[string]hook.RelatedGroup{"secrets.v1": {Objects: req.Outputs["Secret.v1"]}}
	related, err := hook.Related[corev1.Secret](req, "secrets.v1")
	if err != nil || len(related) != 1 {
		t.Errorf("related: got %v, %v", related, err)
	}
	var requirements []hook.RelatedRule
	_, shown, err := hook.RequireRelated[corev1.Secret](req, &requirements, hook.RelatedRule{Name: "more"})
	if names := slices.Collect(func(yield func(string) bool) {
		for _, r := range requirements {
			yield(r.Name)
		}
	}); shown || err != nil || !slices.Equal(names, []string{"more"}) {
		t.Errorf("requirements: got %v, %t, %v", names, shown, err)
	}
}
