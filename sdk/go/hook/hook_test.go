package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A hook is one function. In a program, main is hook.Main(hook.Composite{Sync: sync}).
func Example() {
	type greeting struct {
		Spec struct {
			Who string `json:"who"`
		} `json:"spec"`
	}
	sync := func(_ context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
		parent, err := hook.Parent[greeting](req)
		if err != nil {
			return nil, err
		}
		pods, err := hook.ChildrenOf[corev1.Pod](req, "Pod.v1")
		if err != nil {
			return nil, err
		}
		return &hook.SyncResponse{
			Status: map[string]any{"pods": len(pods)},
			Children: []hook.Child{{Object: &corev1.ConfigMap{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
				ObjectMeta: metav1.ObjectMeta{Name: req.Parent.Name},
				Data:       map[string]string{"text": "Hello, " + parent.Spec.Who + "!"},
			}}},
		}, nil
	}
	req, err := hook.NewSyncRequest(
		map[string]any{
			"apiVersion": "example.com/v1",
			"kind":       "Greeting",
			"metadata":   map[string]any{"name": "hi"},
			"spec":       map[string]any{"who": "World"},
		},
		[]any{json.RawMessage(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`)},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := sync(context.Background(), req)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Status, resp.Children[0].Object.(*corev1.ConfigMap).Data["text"])
	// Output: map[pods:1] Hello, World!
}

const bigInteger = 9007199254740993 // the first that a float64 cannot hold

func message(apiVersion, kind, namespace, name string) *hookv1.ObservedObject {
	return &hookv1.ObservedObject{
		ApiVersion: apiVersion,
		Kind:       kind,
		Namespace:  namespace,
		Name:       name,
		Body: fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"namespace":%q,"name":%q},"spec":{"n":%d}}`,
			apiVersion, kind, namespace, name, bigInteger),
	}
}

// request is a sync of a parent in namespace shop.
func request() *compositev1.SyncRequest {
	return &compositev1.SyncRequest{
		Controller: message("metacontroller.k8s.io/v1alpha1", "CompositeController", "", "hello"),
		Parent:     message("example.com/v1", "Greeting", "shop", "hi"),
		Children: []*hookv1.ObjectGroup{
			{
				ApiVersion: "v1",
				Kind:       "Pod",
				Objects:    []*hookv1.ObservedObject{message("v1", "Pod", "shop", "near"), message("v1", "Pod", "other", "far")},
			},
			{ApiVersion: "apps/v1", Kind: "Deployment"},
		},
		Related: []*hookv1.RelatedGroup{
			{
				ApiVersion: "v1",
				Kind:       "Namespace",
				Resource:   "namespaces",
				Name:       "spaces",
				Result:     &hookv1.RelatedGroup_Items{Items: &hookv1.RelatedItems{}},
			},
			{
				ApiVersion: "v1",
				Kind:       "Namespace",
				Resource:   "namespaces",
				Result: &hookv1.RelatedGroup_Items{Items: &hookv1.RelatedItems{
					Objects: []*hookv1.ObservedObject{message("v1", "Namespace", "", "shop")}}},
			},
			{
				ApiVersion: "cert-manager.io/v1",
				Resource:   "certificates",
				Result:     &hookv1.RelatedGroup_NotFound{NotFound: &hookv1.RelatedNotFound{Message: "no certificates"}},
			},
			{
				ApiVersion: "v1",
				Kind:       "Secret",
				Resource:   "secrets",
				Result:     &hookv1.RelatedGroup_Error{Error: &statuspb.Status{Code: 7, Message: "not allowed"}},
			},
		},
	}
}

func TestARequestIsReadWithItsTypes(t *testing.T) {
	client := serve(t, hook.Composite{Sync: func(_ context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
		parent, err := hook.Parent[map[string]any](req)
		if err != nil {
			return nil, err
		}
		if n := (*parent)["spec"].(map[string]any)["n"]; n != int64(bigInteger) {
			t.Errorf("got integer %v (%T), want %d", n, n, bigInteger)
		}
		pods, err := hook.ChildrenOf[corev1.Pod](req, "Pod.v1")
		if err != nil {
			return nil, err
		}
		if len(pods) != 2 || pods["near"].Namespace != "shop" || pods["other/far"].Name != "far" {
			t.Errorf("got pods %v, want near and other/far", pods)
		}
		if sets, err := hook.ChildrenOf[appsv1.Deployment](req, "Deployment.apps/v1"); sets == nil || len(sets) != 0 ||
			err != nil {
			t.Errorf("a declared kind without objects: got %v, %v, want an empty map", sets, err)
		}
		if _, err := hook.ChildrenOf[corev1.Node](req, "Node.v1"); err == nil ||
			!strings.Contains(err.Error(), `"Node.v1": expected one of the declared kinds [Deployment.apps/v1, Pod.v1]`) {
			t.Errorf("a kind that is not declared: got %v", err)
		}
		checkRelated(t, req)
		return &hook.SyncResponse{}, nil
	}})
	if _, err := client.Sync(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
}

func TestChildrenHaveTheKindThatTheSchemeGivesTheirType(t *testing.T) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, &corev1.Pod{})
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, &corev1.Node{})
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "a", Version: "v1", Kind: "A"}, &corev1.Secret{})
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "b", Version: "v1", Kind: "B"}, &corev1.Secret{})
	object := func(apiVersion, kind string) any {
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "one"}}
	}
	req, err := hook.NewSyncRequest(object("example.com/v1", "Parent"),
		[]any{object("v1", "Pod"), object("batch/v1", "Job")}, "A.a/v1", "B.b/v1", "Service.v1")
	if err != nil {
		t.Fatal(err)
	}
	if pods, err := hook.Children[corev1.Pod](req, scheme); err != nil || pods["one"] == nil {
		t.Errorf("pods: %v, %v, want one", pods, err)
	}
	// The kind's name differs from the Go type's.
	if jobs, err := hook.Children[corev1.Node](req, scheme); err != nil || jobs["one"] == nil {
		t.Errorf("jobs: %v, %v, want one", jobs, err)
	}
	if _, err := hook.Children[corev1.Secret](req, scheme); err == nil || !strings.Contains(err.Error(), "for 2 of") {
		t.Errorf("a type of two kinds: %v, want an error", err)
	}
	if _, err := hook.Children[corev1.Service](req, scheme); err == nil || !strings.Contains(err.Error(), "for 0 of") {
		t.Errorf("a type that is not registered: %v, want an error", err)
	}
}

// checkRelated expects that missing objects do not look like an empty group.
func checkRelated(t *testing.T, req *hook.SyncRequest) {
	t.Helper()
	if found, err := hook.Related[corev1.Namespace](req, "namespaces.v1"); err != nil || found["shop"] == nil {
		t.Errorf("namespaces: got %v, %v", found, err)
	}
	if found, err := hook.Related[corev1.Secret](req, "certificates.cert-manager.io/v1"); found != nil ||
		!errors.Is(err, hook.ErrNotServed) {
		t.Errorf("certificates: got %v, %v, want %v", found, err, hook.ErrNotServed)
	}
	if found, err := hook.Related[corev1.Secret](req, "secrets.v1"); found != nil || err == nil ||
		!strings.Contains(err.Error(), "not allowed") {
		t.Errorf("secrets: got %v, %v, want not allowed", found, err)
	}
	if found, err := hook.Related[corev1.Namespace](req, "spaces"); err != nil || len(found) != 0 {
		t.Errorf("a group with a name: %v, %v, want it found and empty", found, err)
	}
	var requirements []hook.RelatedRule
	for name, want := range map[string]bool{"spaces": true, "later": false} {
		_, shown, err := hook.RequireRelated[corev1.Namespace](req, &requirements,
			hook.RelatedRule{Name: name, APIVersion: "v1", Resource: "namespaces"})
		if err != nil || shown != want {
			t.Errorf("requirement %q: shown is %v, %v, want %v", name, shown, err, want)
		}
	}
	if _, _, err := hook.RequireRelated[corev1.Namespace](req, &requirements,
		hook.RelatedRule{Resource: "namespaces"}); err == nil ||
		len(requirements) != 2 {
		t.Errorf("a requirement without a name: %v, with %d requirements; want an error, and 2", err, len(requirements))
	}
	if found, err := hook.Related[corev1.Secret](req, "pods.v1"); found != nil || err == nil ||
		!strings.Contains(err.Error(), "not in the request") {
		t.Errorf("pods: got %v, %v, want an error", found, err)
	}
}

func TestDesiredObjectsSayOnlyWhatTheirAuthorSaid(t *testing.T) {
	client := serve(t, hook.Composite{Sync: func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) {
		return &hook.SyncResponse{
			Status:      map[string]any{"n": bigInteger},
			ResyncAfter: 1500 * time.Millisecond,
			Children: []hook.Child{
				{Object: &corev1.Service{
					TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
					ObjectMeta: metav1.ObjectMeta{Name: "typed"},
				}},
				{Object: json.RawMessage(`{"apiVersion":"v1","kind":"Raw","metadata":{"name":"raw"},"n":1.0,"keep":null}`)},
				{Object: json.RawMessage(
					`{"apiVersion":"v1","kind":"Old","metadata":{"name":"old","creationTimestamp":null},` +
						`"spec":{"templates":[{"metadata":{"creationTimestamp":null},"n":1.0}]},"status":{"a":{"b":null}}}`)},
				{Object: map[string]any{
					"apiVersion": "v1",
					"kind":       "Map",
					"metadata":   map[string]any{"name": "map"},
					"status":     map[string]any{"n": bigInteger},
				}},
			},
		}, nil
	}})
	got, err := client.Sync(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	want := &compositev1.SyncResponse{
		Status:  []byte(`{"n":9007199254740993}`),
		Details: &hookv1.ResponseDetails{ResyncAfter: durationpb.New(1500 * time.Millisecond)},
	}
	for _, body := range []string{
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"typed"},"spec":{}}`,
		`{"apiVersion":"v1","kind":"Raw","metadata":{"name":"raw"},"n":1.0,"keep":null}`,
		`{"apiVersion":"v1","kind":"Old","metadata":{"name":"old"},"spec":{"templates":[{"metadata":{},"n":1.0}]}}`,
		`{"apiVersion":"v1","kind":"Map","metadata":{"name":"map"},"status":{"n":9007199254740993}}`,
	} {
		want.Children = append(want.Children,
			&hookv1.DesiredObject{Encoding: hookv1.Encoding_ENCODING_JSON, Body: []byte(body)})
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
}

func TestErrorsTellWhatIsToHappen(t *testing.T) {
	cases := map[string]struct {
		resp *hook.SyncResponse
		err  error
		code codes.Code
		text string
	}{
		"any error": {err: errors.New("out of coffee"), code: codes.Internal, text: "out of coffee"},
		"the status of another service": {
			err:  fmt.Errorf("billing: %w", status.Error(codes.InvalidArgument, "no such account")),
			code: codes.Internal,
			text: "no such account",
		},
		"a rejected parent": {
			err:  fmt.Errorf("wrapped: %w", hook.Reject("NoSuchPlan", "plan %q", "gold")),
			code: codes.FailedPrecondition,
			text: `plan "gold"`,
		},
		"a wish to wait": {
			err:  hook.RetryAfter(time.Second, "busy"),
			code: codes.ResourceExhausted,
			text: "busy",
		},
		"a context's error": {err: context.DeadlineExceeded, code: codes.DeadlineExceeded},
		"no response":       {code: codes.Internal, text: "neither a response nor an error"},
		"a nil child": {
			resp: &hook.SyncResponse{Children: []hook.Child{{}}},
			code: codes.Internal,
			text: "Children[0]: is nil",
		},
		"no TypeMeta": {
			resp: &hook.SyncResponse{Children: []hook.Child{{Object: &corev1.Pod{}}}},
			code: codes.Internal,
			text: "Children[0]: object without a kind",
		},
		"no name": {
			resp: &hook.SyncResponse{Children: []hook.Child{{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}}},
			code: codes.Internal,
			text: "Children[0]: Pod.v1 has no metadata.name",
		},
		"a status that is no object": {
			resp: &hook.SyncResponse{Status: 5},
			code: codes.Internal,
			text: "status: int marshals to 5",
		},
		"a negative time": {
			resp: &hook.SyncResponse{ResyncAfter: -1},
			code: codes.Internal,
			text: "ResyncAfter is -1ns",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client := serve(t,
				hook.Composite{Sync: func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) { return c.resp, c.err }})
			_, err := client.Sync(t.Context(), request())
			if got := status.Convert(err); got.Code() != c.code || !strings.Contains(got.Message(), c.text) {
				t.Errorf("got %v, want %s %q", err, c.code, c.text)
			}
		})
	}
}

func TestDetailsOfErrors(t *testing.T) {
	for err, want := range map[error]string{
		hook.Reject("NoSuchPlan", "no"):    "NoSuchPlan",
		hook.RetryAfter(time.Minute, "no"): "1m0s",
	} {
		var got []string
		for _, detail := range status.Convert(err).Details() {
			switch detail := detail.(type) {
			case *errdetails.ErrorInfo:
				got = append(got, detail.GetReason())
			case *errdetails.RetryInfo:
				got = append(got, detail.GetRetryDelay().AsDuration().String())
			}
		}
		if diff := cmp.Diff([]string{want}, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}

func TestFunctionsThatAreNilAreNotServed(t *testing.T) {
	client := serve(t, hook.Composite{})
	_, err := client.Finalize(t.Context(), &compositev1.FinalizeRequest{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("finalize: got %v, want %s", err, codes.Unimplemented)
	}
	_, err = client.Customize(t.Context(), &compositev1.CustomizeRequest{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("customize: got %v, want %s", err, codes.Unimplemented)
	}
}
