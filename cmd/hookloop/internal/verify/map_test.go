package verify

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	mapv1 "github.com/hookloop/hookloop/gen/hookloop/map/v1"
	"google.golang.org/protobuf/proto"
)

// TestMapHooks asks map hooks about an input, and about an input that is gone.
func TestMapHooks(t *testing.T) {
	t.Parallel()
	const output = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"out"}}`
	for _, test := range []struct {
		name   string
		answer string
		want   []string
	}{
		{"good", `{"outputs":[` + output + `],"finalized":true}`, nil},
		{"status", `{"outputs":[` + output + `],"status":{"up":1},"finalized":true}`, []string{ruleRejected}},
		{"children instead of outputs", `{"children":[` + output + `]}`, []string{ruleErrorAnswer}},
		{"twice", `{"outputs":[` + output + `,` + output + `],"finalized":true}`, []string{ruleDuplicate}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			url := serveWebhook(t, func(_ *http.Request, r *webhookResponse) bool {
				r.status, r.body = http.StatusOK, []byte(test.answer)
				return true
			})
			report := verify(t, Options{Kind: string(hook.Mapping), Version: "v2", Addresses: []string{
				url, fmt.Sprintf("%s=%s", hook.Tombstone, url), fmt.Sprintf("%s=%s", hook.Finalize, url),
			}})
			if diff := cmp.Diff(test.want, ids(report, Fault)); diff != "" {
				t.Errorf("faults (-want +got):\n%s\n%s", diff, text(t, report))
			}
		})
	}
}

// TestOutputsOverGRPC reads responses of each kind of hook with a body that has a key twice. Only the
// JSON of the desired objects is at fault.
func TestOutputsOverGRPC(t *testing.T) {
	desired := []*hookv1.DesiredObject{{
		Body: []byte(`{"apiVersion":"v1","kind":"Secret","kind":"ConfigMap","metadata":{"name":"out"}}`),
	}}
	for kind, response := range map[hook.ControllerKind]proto.Message{
		hook.Composite: &compositev1.SyncResponse{Children: desired},
		hook.Decorator: &decoratorv1.SyncResponse{Attachments: desired},
		hook.Mapping:   &mapv1.MapResponse{Outputs: desired},
	} {
		r := &reply{}
		new(grpcClient).read(r, &hook.Question{Kind: kind}, response)
		if !r.has(ruleDuplicateKey) {
			t.Errorf("a hook of kind %s: the key that its answer has twice is not found", kind)
		}
	}
}

func TestInputOfAMapHook(t *testing.T) {
	pod := file(t, "{apiVersion: v1, kind: Pod, metadata: {name: a}}")
	for name, o := range map[string]Options{
		"of another kind":         {Kind: string(hook.Mapping), Input: pod},
		"of another kind of hook": {Input: pod},
	} {
		o.Addresses = []string{"127.0.0.1:1"}
		if _, err := Verify(t.Context(), o); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	s, err := load(Options{Kind: string(hook.Mapping), Input: file(t,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: prices, namespace: shop}}")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("ConfigMap/shop/prices", mapKey(s.input)); diff != "" {
		t.Errorf("map key (-want +got):\n%s", diff)
	}
}
