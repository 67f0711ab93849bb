package mentions_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/mentions"
)

type node struct {
	name  string
	next  *node
	named map[string]any
	list  [][]byte
}

func TestOf(t *testing.T) {
	n := &node{name: "a web", named: map[string]any{"web": 1, "b": &node{name: "web"}}, list: [][]byte{[]byte("web")}}
	n.next = n
	got := mentions.Of(n, "web")
	slices.Sort(got)
	if diff := cmp.Diff([]string{".name", ".named[].name", ".named[key]"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := mentions.Of(nil, "web"); got != nil {
		t.Errorf("nil mentions %v", got)
	}
}
