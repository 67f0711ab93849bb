package plan_test

import (
	"encoding/base64"
	"testing"

	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const secretScope = `children: [{apiVersion: v1, kind: Secret, resource: secrets, method: `

var secretA = object.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Namespace: "shop", Name: "a"}

// storing is a server that stores a Secret's stringData in its data, as the API server does.
func storing(body map[string]any) {
	text, _ := body["stringData"].(map[string]any)
	data, ok := body["data"].(map[string]any)
	if !ok {
		data = map[string]any{}
		body["data"] = data
	}
	for key, value := range text {
		data[key] = base64.StdEncoding.EncodeToString([]byte(value.(string)))
	}
	delete(body, "stringData")
}

// TestDriftOfStringDataIsRepaired compares the stringData of an answer with the data on the server.
func TestDriftOfStringDataIsRepaired(t *testing.T) {
	const (
		both = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"user":"me","word":"x"},` +
			`"data":{"raw":"cmF3"}}`
		one = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"user":"me"},"data":{"raw":"cmF3"}}`
	)
	for method, each := range map[plan.Method]int{plan.InPlace: 1, plan.Recreate: 2} {
		t.Run(string(method), func(t *testing.T) {
			w := newCluster(t, secretScope+string(method)+"}]")
			w.alter = storing
			data := func() map[string]any { return w.objects[secretA]["data"].(map[string]any) }
			w.wantWrites("a new child", 1, both)
			w.wantWrites("a resync", 0, both)
			w.meddle(secretA, func(body map[string]any) { body["data"].(map[string]any)["word"] = "dGhlaXJz" })
			w.wantWrites("a value was changed", each, both)
			if got := data()["word"]; got != "eA==" {
				t.Errorf("data.word is %v", got)
			}
			w.meddle(secretA, func(body map[string]any) { delete(body["data"].(map[string]any), "user") })
			w.wantWrites("a value was removed", each, both)
			w.forget()
			w.wantWrites("after a restart", 0, both)
			w.wantWrites("the hook drops a value", each, one)
			if _, there := data()["word"]; there || len(data()) != 2 {
				t.Errorf("data is %v, want what the hook names", data())
			}
		})
	}
}

// TestStringDataThatIsNone leaves a malformed stringData for the server to refuse.
func TestStringDataThatIsNone(t *testing.T) {
	w := newCluster(t, secretScope+"InPlace}]")
	result := w.sync(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"port":8080}}`)
	text, _ := result.Actions[0].Body["stringData"].(map[string]any)
	if text["port"] != int64(8080) {
		t.Errorf("the body is %v", result.Actions[0].Body)
	}
}
