package session

import (
	"slices"
	"testing"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/protobuf/proto"
)

// TestTheSameListAgain compares the shortcut for a response with the same messages with the
// comparison of all items.
func TestTheSameListAgain(t *testing.T) {
	var messages []*hookv1.DesiredObject
	var items []newItem
	for _, body := range []string{"one", "two", "two"} {
		m := &hookv1.DesiredObject{Body: []byte(body)}
		raw, err := canonical.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, m)
		items = append(items, newItem{item{hash: hashOf(raw), size: len(raw)}, raw})
	}
	list, _, err := difference(nil, items, messages)
	if err != nil {
		t.Fatal(err)
	}
	if !list.has(messages) || list.has(messages[:2]) || list.has(append(messages[:2:2], &hookv1.DesiredObject{})) ||
		(*itemList)(nil).has(nil) || (&itemList{}).has(nil) {
		t.Error("has does not compare the messages")
	}
	again, pieces, err := difference(list, items, messages)
	if err != nil {
		t.Fatal(err)
	}
	want := &streamv1.Desired{Pieces: pieces}
	got := &streamv1.Desired{Pieces: list.whole()}
	if !proto.Equal(want, got) || again.digest != list.digest {
		t.Errorf("the shortcut has the pieces %v, a comparison of all items %v", got, want)
	}
}

// TestAnUnchangedListIsShared applies the answer of a hook with the same list, and one with another
// digest.
func TestAnUnchangedListIsShared(t *testing.T) {
	d := &streamv1.Desired{}
	want := &itemList{}
	for _, body := range []string{"\x12\x02{}", "\x12\x03{ }"} {
		want.add(item{hash: hashOf([]byte(body)), size: len(body)}, false)
		d.Pieces = append(d.Pieces, &streamv1.Piece{Content: &streamv1.Piece_Insert{Insert: []byte(body)}})
	}
	d.Digest = want.digest.wire()
	first, err := patch(nil, d, DefaultMessageBytes)
	if err != nil {
		t.Fatal(err)
	}
	first.derived.Store("decoded")
	again := &streamv1.Desired{Base: d.GetDigest(), Digest: d.GetDigest(), Pieces: first.whole()}
	second, err := patch(first, again, DefaultMessageBytes)
	if err != nil || second != first || second.derived.Load() != "decoded" {
		t.Errorf("patch = %p, %v, want the list before, %p, with its derived value", second, err, first)
	}
	again.Digest = make([]byte, hashBytes)
	if _, err := patch(first, again, DefaultMessageBytes); err == nil {
		t.Error("an unchanged list with another digest is no error")
	}
	shorter := &streamv1.Desired{Base: d.GetDigest(), Digest: d.GetDigest(), Pieces: []*streamv1.Piece{run(0, 1)}}
	if _, err := patch(first, shorter, DefaultMessageBytes); err == nil {
		t.Error("a shorter list with the digest of the whole one is no error")
	}
}

// TestSetsKeepNoRoom applies a snapshot with many objects in one slot and one in another. The lists
// of the latter have no room for the former.
func TestSetsKeepNoRoom(t *testing.T) {
	const many = 1000
	call := &streamv1.Call{}
	all := digest{}
	for i := range many + 1 {
		slot := uint32(1)
		if i == many {
			slot = 2
		}
		raw, err := canonical.Marshal(encodeThing(child(i, 0)))
		if err != nil {
			t.Fatal(err)
		}
		all = all.plus(entryHash(slot, hashOf(raw)))
		up := &streamv1.Upsert{Slot: slot, Content: &streamv1.Upsert_Object{Object: raw}}
		call.Upserts = append(call.Upserts, up)
	}
	call.Digest = all.wire()
	got, missing, err := NewState(0).apply(nil, call)
	if err != nil || missing != nil {
		t.Fatal(missing, err)
	}
	for slot, want := range map[int]int{1: many, 2: 1} {
		p := got.slots[slot]
		if len(p.objects) != want || len(p.view) != want || max(cap(p.objects), cap(p.view)) > want+want/8+16 {
			t.Errorf("slot %d has %d objects and %d messages with room for %d and %d, want %d", slot, len(p.objects),
				len(p.view), cap(p.objects), cap(p.view), want)
		}
		for i, o := range p.objects {
			if p.view[i] != o.message {
				t.Fatalf("slot %d: message %d is not that of the object", slot, i)
			}
		}
	}
}

// TestAFewChangesCopyNoList changes some of the children of a parent, and asks about them. The
// engine keeps its list of what the hook holds, unless many have changed, or one has come or gone.
func TestAFewChangesCopyNoList(t *testing.T) {
	e, h := direct(t, HookConfig{})
	s := crowd(3 * maxReplaced)
	list := func() *entry[*thing] {
		e.Ask(s.question("s"))
		exchange(t, e, h)
		for _, entries := range e.peer.subjects["s"].slots {
			if len(entries) > maxReplaced {
				return &entries[0]
			}
		}
		t.Fatal("the engine has no list of the children")
		return nil
	}
	last := list()
	for round, c := range []struct {
		name           string
		changed, added int
		copied         bool
	}{
		{"no change", 0, 0, false}, {"one child", 1, 0, false}, {"some children", maxReplaced, 0, false},
		{"many children", maxReplaced + 1, 0, true}, {"a further child", 1, 1, true}, {"a child less", 0, -1, true},
	} {
		s.children = slices.Clone(s.children)
		for i := range c.changed {
			s.children[2*i] = child(2*i, round+1)
		}
		for range c.added {
			s.children = append(s.children, child(len(s.children), 0))
		}
		if c.added < 0 {
			s.children = s.children[:len(s.children)+c.added]
		}
		now := list()
		if got := now != last; got != c.copied {
			t.Errorf("%s: the list was copied: %v, want %v", c.name, got, c.copied)
		}
		last = now
		if counts := e.Counts(); counts.Snapshots != 1 || counts.Nacks != 0 {
			t.Fatalf("%s: %+v, want one snapshot and no Nack", c.name, counts)
		}
	}
}
