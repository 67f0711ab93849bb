package session

import (
	"testing"

	hookv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/hook/v1"
	streamv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/stream/v1"
	"google.golang.org/protobuf/proto"
)

// TestTheSameListAgain compares the shortcut for a response with the same messages with the
// comparison of all items.
func TestTheSameListAgain(t *testing.T) {
	var messages []*hookv1.DesiredObject
	var items []item
	for _, body := range []string{"one", "two", "two"} {
		m := &hookv1.DesiredObject{Body: []byte(body)}
		raw, err := canonical.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		messages, items = append(messages, m), append(items, item{raw: raw, size: len(raw), message: m})
	}
	list, _ := difference(nil, items)
	if !list.has(messages) || list.has(messages[:2]) || list.has(append(messages[:2:2], &hookv1.DesiredObject{})) ||
		(*itemList)(nil).has(nil) || (&itemList{}).has(nil) {
		t.Error("has does not compare the messages")
	}
	again, pieces := difference(list, list.items)
	want, got := &streamv1.Desired{Pieces: pieces}, &streamv1.Desired{Pieces: list.whole()}
	if !proto.Equal(want, got) || again.digest != list.digest {
		t.Errorf("the shortcut has the pieces %v, a comparison of all items %v", got, want)
	}
}
