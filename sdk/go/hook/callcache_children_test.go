package hook

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"google.golang.org/protobuf/proto"
)

// TestChildrenOfOneParent encodes a list of children call after call, while children change, come,
// go and move, as JSON in a buffer that is used again, as Encoded of such JSON, and as values: each
// list equals one that is encoded anew. A list without changes is the one before.
func TestChildrenOfOneParent(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	serial := 0
	body := func() string {
		serial++
		name := fmt.Sprint("page-", random.IntN(99))
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Page","metadata":{"name":%q},"text":"%d"}`, name, serial)
	}
	var bodies []string
	var children []Child
	for range 20 {
		bodies = append(bodies, body())
		children = append(children, Child{Object: json.RawMessage{}})
	}
	buffer := make([]byte, 1<<14)
	cache := &callCache{}
	shared := 0
	var before []*hookv1.DesiredObject
	for round := range 300 {
		changes := random.IntN(8)
		if changes < 6 && len(bodies) > 0 {
			switch i := random.IntN(len(bodies)); changes {
			case 0:
				bodies[i] = body()
			case 1:
				bodies = append(bodies, body())
				children = append(children, Child{})
			case 2:
				bodies = slices.Delete(bodies, i, i+1)
				children = slices.Delete(children, i, i+1)
			case 3:
				bodies[0], bodies[i] = bodies[i], bodies[0]
			case 4:
				children[i].Ready = []*bool{nil, new(true), new(false)}[random.IntN(3)]
			case 5:
				children[i].DependsOn = []Dependency{{APIVersion: "v1", Kind: "Page", Name: fmt.Sprint(random.IntN(2))}}
			}
		}
		rest := buffer
		for i, body := range bodies {
			n := copy(rest, body)
			children[i].Object = json.RawMessage(rest[:n:n])
			switch rest = rest[n:]; i % 3 {
			case 0:
				children[i].Object = map[string]any{}
				if err := json.Unmarshal([]byte(body), &children[i].Object); err != nil {
					t.Fatal(err)
				}
			case 1:
				encoded, err := Encode(children[i].Object)
				if err != nil {
					t.Fatal(err)
				}
				children[i].Object = encoded
			}
		}
		cache = cache.renewed()
		got, err := cache.encode("Children", children)
		if err != nil {
			t.Fatal(err)
		}
		want, err := (&callCache{once: true}).encode("Children", children)
		if err != nil {
			t.Fatal(err)
		}
		equal := func(a, b *hookv1.DesiredObject) bool { return proto.Equal(a, b) }
		if !slices.EqualFunc(want, got, equal) {
			t.Fatalf("round %d: got %v, want %v", round, got, want)
		}
		if len(got) > 0 && len(got) == len(before) && &got[0] == &before[0] {
			shared++
		}
		before = got
	}
	if shared < 50 {
		t.Errorf("%d of 300 responses are the list before, want those without changes", shared)
	}
}

// TestAnInvalidChildIsNotKept has an error in each of two calls, at the same child.
func TestAnInvalidChildIsNotKept(t *testing.T) {
	cache := &callCache{}
	good := Child{Object: json.RawMessage(`{"apiVersion":"v1","kind":"Page","metadata":{"name":"a"}}`)}
	for _, bad := range []Child{{Object: json.RawMessage(`{`)}, {Object: func() {}}, {}, {Object: json.RawMessage(nil)},
		{Object: &Encoded{}}, {Object: (*Encoded)(nil)}} {
		for range 2 {
			_, err := cache.encode("Children", []Child{good, bad})
			if err == nil || !strings.HasPrefix(err.Error(), "Children[1]: ") {
				t.Errorf("%v: the error is %v, want one of Children[1]", bad.Object, err)
			}
		}
		if got, err := cache.encode("Children", []Child{good}); err != nil || len(got) != 1 {
			t.Errorf("after the error: %v, %v", got, err)
		}
		cache = cache.renewed()
	}
}
