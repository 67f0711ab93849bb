package hook

import (
	"context"
	"sync"
	"testing"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
)

// TestAppendToSharedJSON appends to the JSON of one message in the calls of two parents, as
// functions that compute a hash or patch a copy do: neither sees the other's bytes. Decoded
// messages have spare capacity.
func TestAppendToSharedJSON(t *testing.T) {
	body := append(make([]byte, 0, 64), `{"kind":"Shop"}`...)
	shared := &hookv1.ObservedObject{ApiVersion: "v1", Kind: "Shop", Name: "shared", Body: body}
	var calls sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		req, err := newSyncRequest(
			context.Background(),
			&compositev1.SyncRequest{
				Controller: shared,
				Related: []*hookv1.RelatedGroup{{
					Name:   "shops",
					Result: &hookv1.RelatedGroup_Items{Items: &hookv1.RelatedItems{Objects: []*hookv1.ObservedObject{shared}}},
				}},
			},
			&hookv1.ObservedObject{ApiVersion: "v1", Kind: "Parent", Name: name},
			[]*hookv1.ObjectGroup{{ApiVersion: "v1", Kind: "Shop", Objects: []*hookv1.ObservedObject{shared}}},
			false,
		)
		if err != nil {
			t.Fatal(err)
		}
		for place, o := range map[string]Object{
			"controller": req.Controller,
			"children":   req.Children["Shop.v1"]["shared"],
			"related":    req.Related["shops"].Objects["shared"],
		} {
			calls.Go(func() {
				if got, want := string(append(o.JSON, place+name...)), string(body)+place+name; got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			})
		}
	}
	calls.Wait()
}
