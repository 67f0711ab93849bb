package session

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/protobuf/proto"
)

// item is a desired object in a list.
type item struct {
	hash hash
	link hash // see linkHash
	size int
}

// itemList is a list of desired objects. Except for derived, it is immutable once it is built.
// messages belong to the items in the same order, and digest is the sum of the links.
type itemList struct {
	items []item
	// messages is the list in every response with these objects.
	messages []*hookv1.DesiredObject
	digest   digest
	size     int
	derived  Derived
}

// Derived stores a value that a driver derives from the desired objects in a response. Consecutive
// responses with the same objects share a Derived, so the driver needs to compute the value only
// once. It is safe for concurrent use.
type Derived struct{ value atomic.Value }

// Load returns the stored value, or nil.
func (d *Derived) Load() any { return d.value.Load() }

// Store stores a value. A Derived must always hold values of the same type.
func (d *Derived) Store(value any) { d.value.Store(value) }

// itemBytes is what an item counts towards the limit of a list in addition to its body. Without it,
// a short run could stand for any number of items.
const itemBytes = 100

// keptBytes is what a kept item takes in addition to its body and itemBytes: 112 bytes for its
// message, 40 for the item, and what a driver derives from it.
const keptBytes = 100

// bytes returns about how much memory the list takes.
func (l *itemList) bytes() int {
	if l == nil {
		return 0
	}
	return l.size + keptBytes*len(l.items)
}

// has reports whether the list contains exactly these messages in this order. A nil list contains
// none.
func (l *itemList) has(messages []*hookv1.DesiredObject) bool {
	if l == nil || len(messages) == 0 || len(l.messages) != len(messages) {
		return false
	}
	return &l.messages[0] == &messages[0] || slices.Equal(l.messages, messages)
}

// whole returns the pieces that stand for the whole list, which must not be empty.
func (l *itemList) whole() []*streamv1.Piece {
	//nolint:gosec // bounded by the size of a message
	all := &streamv1.Run{Count: uint32(len(l.items))}
	return []*streamv1.Piece{{Content: &streamv1.Piece_Keep{Keep: all}}}
}

// isWhole reports whether pieces stand for the whole list.
func (l *itemList) isWhole(pieces []*streamv1.Piece) bool {
	if len(pieces) != 1 || len(l.items) == 0 {
		return false
	}
	all := pieces[0].GetKeep()
	return all != nil && all.GetFirst() == 0 && int(all.GetCount()) == len(l.items)
}

// add appends an item without its message. If linked is true, the item's link is already correct.
func (l *itemList) add(i item, linked bool) {
	if !linked {
		var before hash
		if n := len(l.items); n > 0 {
			before = l.items[n-1].hash
		}
		i.link = linkHash(before, i.hash)
	}
	l.items = append(l.items, i)
	l.digest = l.digest.plus(i.link)
	l.size += i.size + itemBytes
}

// keep appends a run of items from another list, without their messages.
func (l *itemList) keep(from *itemList, first, count int) {
	for n, i := range from.items[first : first+count] {
		l.add(i, n > 0 || first == 0 && len(l.items) == 0)
	}
}

// newItem is an item in a response, with hash and size. raw is nil if the last response contained
// the same message.
type newItem struct {
	item
	raw []byte
}

// difference builds a list from messages, and the pieces that describe it: runs of the previous
// list, which may be nil, and new items. The list keeps the slice of messages.
func difference(
	before *itemList, items []newItem, messages []*hookv1.DesiredObject,
) (*itemList, []*streamv1.Piece, error) {
	if before == nil {
		before = &itemList{}
	}
	w := &pieceWriter{before: before, list: &itemList{items: make([]item, 0, len(items)), messages: messages}}
	old := before.items
	head := 0
	for head < min(len(old), len(items)) && old[head].hash == items[head].hash {
		head++
	}
	tail := 0
	for tail < min(len(old), len(items))-head && old[len(old)-1-tail].hash == items[len(items)-1-tail].hash {
		tail++
	}
	w.keep(0, head)
	if err := w.middle(old[head:len(old)-tail], items[:len(items)-tail], head); err != nil {
		return nil, nil, err
	}
	w.keep(len(old)-tail, tail)
	w.flush()
	return w.list, w.pieces, nil
}

// pieceWriter builds a list together with its pieces.
type pieceWriter struct {
	before       *itemList
	list         *itemList
	pieces       []*streamv1.Piece
	first, count int // current run
}

// keep extends the current run or starts another one.
func (w *pieceWriter) keep(first, count int) {
	if count == 0 {
		return
	}
	if w.count > 0 && w.first+w.count != first {
		w.flush()
	}
	if w.count == 0 {
		w.first = first
	}
	w.count += count
}

// flush writes the current run.
func (w *pieceWriter) flush() {
	if w.count == 0 {
		return
	}
	w.list.keep(w.before, w.first, w.count)
	w.pieces = append(w.pieces, &streamv1.Piece{Content: &streamv1.Piece_Keep{
		//nolint:gosec // bounded by the size of a message
		Keep: &streamv1.Run{First: uint32(w.first), Count: uint32(w.count)},
	}})
	w.count = 0
}

// middle writes the items after head. In the previous list, other items are there (old), and some
// of these may have moved.
func (w *pieceWriter) middle(old []item, items []newItem, head int) error {
	at := make(map[hash]int, len(old))
	for n, i := range old {
		at[i.hash] = head + n
	}
	for place := head; place < len(items); place++ {
		i := items[place]
		if n, found := at[i.hash]; found {
			w.keep(n, 1)
			continue
		}
		w.flush()
		if i.raw == nil {
			var err error
			i.raw, err = canonical.Marshal(w.list.messages[place])
			if err != nil {
				return err
			}
		}
		w.list.add(i.item, false)
		w.pieces = append(w.pieces, &streamv1.Piece{Content: &streamv1.Piece_Insert{Insert: i.raw}})
	}
	return nil
}

// patch assembles a list from pieces. It returns an error if a piece is invalid, or if the list
// would exceed limit bytes.
func patch(before *itemList, d *streamv1.Desired, limit uint64) (*itemList, error) {
	switch {
	case len(d.GetBase()) == 0:
		before = &itemList{}
	case before == nil || !before.digest.is(d.GetBase()):
		return nil, fmt.Errorf("the answer refers to a list that the engine does not hold")
	case before.isWhole(d.GetPieces()) && before.digest.is(d.GetDigest()):
		return before, nil
	}
	most := min(countItems(d), len(before.items)+len(d.GetPieces()))
	next := &itemList{items: make([]item, 0, most), messages: make([]*hookv1.DesiredObject, 0, most)}
	for n, piece := range d.GetPieces() {
		if err := next.take(before, piece, limit); err != nil {
			return nil, fmt.Errorf("pieces[%d]: %w", n, err)
		}
	}
	if !next.digest.is(d.GetDigest()) {
		return nil, fmt.Errorf("the list of %d items has another digest than the answer says", len(next.items))
	}
	return next, nil
}

func countItems(d *streamv1.Desired) int {
	n := 0
	for _, piece := range d.GetPieces() {
		n += max(1, int(piece.GetKeep().GetCount()))
	}
	return n
}

// take appends a piece, unless the list would then exceed limit bytes.
func (l *itemList) take(before *itemList, piece *streamv1.Piece, limit uint64) error {
	switch content := piece.GetContent().(type) {
	case *streamv1.Piece_Keep:
		first := int(content.Keep.GetFirst())
		count := int(content.Keep.GetCount())
		if count < 1 || first+count > len(before.items) {
			return fmt.Errorf("keeps items %d to %d, expected some of the %d that are held", first, first+count-1,
				len(before.items))
		}
		if err := l.room(before.items[first:first+count], limit); err != nil {
			return err
		}
		l.keep(before, first, count)
		l.messages = append(l.messages, before.messages[first:first+count]...)
		return nil
	case *streamv1.Piece_Insert:
		i := item{size: len(content.Insert)}
		m := &hookv1.DesiredObject{}
		if err := l.room([]item{i}, limit); err != nil {
			return err
		}
		if err := proto.Unmarshal(content.Insert, m); err != nil {
			return fmt.Errorf("is no hookloop.hook.v1.DesiredObject: %w", err)
		}
		i.hash = hashOf(content.Insert)
		l.add(i, false)
		l.messages = append(l.messages, m)
		return nil
	default:
		return fmt.Errorf("has neither keep nor insert, expected one of them")
	}
}

// errLarge is returned for a list that exceeds the limit of a message.
var errLarge = errors.New("the list of desired objects is too large")

// room returns an error if the list would exceed its limit with more items.
func (l *itemList) room(more []item, limit uint64) error {
	size := l.size
	for _, i := range more {
		size += i.size + itemBytes
		if uint64(size) > limit { //nolint:gosec // not negative
			return fmt.Errorf(
				"%w: it takes more than %d bytes, each object counted with its size and %d bytes more", errLarge,
				limit, itemBytes)
		}
	}
	return nil
}
