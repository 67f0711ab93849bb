package session

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	hookv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/hook/v1"
	streamv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/stream/v1"
	"google.golang.org/protobuf/proto"
)

// item is one desired object. The hook keeps its bytes for comparisons, the engine only the
// message.
type item struct {
	hash    hash
	link    hash // linkHash of the previous item and this one
	size    int
	raw     []byte
	message *hookv1.DesiredObject
}

// itemList is a desired list. It is immutable after construction. Invariant: digest is the sum of
// the links.
type itemList struct {
	items  []item
	digest digest
	size   int
}

// itemBytes is the approximate memory of an item besides its body. A run is short on the wire,
// whatever its length.
const itemBytes = 100

// bytes returns the approximate memory of the list.
func (l *itemList) bytes() int {
	if l == nil {
		return 0
	}
	return l.size
}

// has reports whether the list has exactly these messages, in this order. A nil list has none.
func (l *itemList) has(messages []*hookv1.DesiredObject) bool {
	return l != nil && len(messages) > 0 && slices.EqualFunc(l.items, messages,
		func(i item, m *hookv1.DesiredObject) bool { return i.message == m })
}

// whole returns the pieces of a list that is equal to this one, which is not empty.
func (l *itemList) whole() []*streamv1.Piece {
	//nolint:gosec // bounded by the size of a message
	all := &streamv1.Run{Count: uint32(len(l.items))}
	return []*streamv1.Piece{{Content: &streamv1.Piece_Keep{Keep: all}}}
}

// add appends an item. linked reports that its link is already correct.
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

// keep appends a run of items of another list.
func (l *itemList) keep(from *itemList, first, count int) {
	for n, i := range from.items[first : first+count] {
		l.add(i, n > 0 || first == 0 && len(l.items) == 0)
	}
}

// difference returns a list and its pieces: runs of the previous list, which may be nil, and new
// items. The items have raw, size and message.
func difference(before *itemList, items []item) (*itemList, []*streamv1.Piece) {
	if before == nil {
		before = &itemList{}
	}
	w := &pieceWriter{before: before, list: &itemList{items: make([]item, 0, len(items))}}
	old := before.items
	head := 0
	for head < min(len(old), len(items)) && bytes.Equal(old[head].raw, items[head].raw) {
		head++
	}
	tail := 0
	for tail < min(len(old), len(items))-head && bytes.Equal(old[len(old)-1-tail].raw, items[len(items)-1-tail].raw) {
		tail++
	}
	w.keep(0, head)
	w.middle(old[head:len(old)-tail], head, items[head:len(items)-tail])
	w.keep(len(old)-tail, tail)
	w.flush()
	for n := range w.list.items { // another message may have equal bytes
		w.list.items[n].message = items[n].message
	}
	return w.list, w.pieces
}

// pieceWriter builds a list and its pieces.
type pieceWriter struct {
	before       *itemList
	list         *itemList
	pieces       []*streamv1.Piece
	first, count int // the current run
}

// keep extends the current run, or starts one.
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

// middle writes the items between the common ends of the lists. They may have moved.
func (w *pieceWriter) middle(old []item, offset int, items []item) {
	at := make(map[hash]int, len(old))
	for n, i := range old {
		at[i.hash] = offset + n
	}
	for _, i := range items {
		h := hashOf(i.raw)
		if n, found := at[h]; found {
			w.keep(n, 1)
			continue
		}
		w.flush()
		i.hash = h
		w.list.add(i, false)
		w.pieces = append(w.pieces, &streamv1.Piece{Content: &streamv1.Piece_Insert{Insert: i.raw}})
	}
}

// patch assembles a list of at most limit bytes from pieces. An error describes the invalid piece.
func patch(before *itemList, d *streamv1.Desired, limit uint64) (*itemList, error) {
	switch {
	case len(d.GetBase()) == 0:
		before = &itemList{}
	case before == nil || !before.digest.is(d.GetBase()):
		return nil, fmt.Errorf("the answer refers to a list that the engine does not hold")
	}
	next := &itemList{items: make([]item, 0, min(countItems(d), len(before.items)+len(d.GetPieces())))}
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

// take appends a piece, if the list then has at most limit bytes.
func (l *itemList) take(before *itemList, piece *streamv1.Piece, limit uint64) error {
	switch content := piece.GetContent().(type) {
	case *streamv1.Piece_Keep:
		first, count := int(content.Keep.GetFirst()), int(content.Keep.GetCount())
		if count < 1 || first+count > len(before.items) {
			return fmt.Errorf("keeps items %d to %d, expected some of the %d that are held", first, first+count-1,
				len(before.items))
		}
		if err := l.room(before.items[first:first+count], limit); err != nil {
			return err
		}
		l.keep(before, first, count)
		return nil
	case *streamv1.Piece_Insert:
		i := item{size: len(content.Insert), message: &hookv1.DesiredObject{}}
		if err := l.room([]item{i}, limit); err != nil {
			return err
		}
		if err := proto.Unmarshal(content.Insert, i.message); err != nil {
			return fmt.Errorf("is no hookloop.hook.v1.DesiredObject: %w", err)
		}
		i.hash = hashOf(content.Insert)
		l.add(i, false)
		return nil
	default:
		return fmt.Errorf("has neither keep nor insert, expected one of them")
	}
}

// errLarge is the error of a list that exceeds the limit of a message.
var errLarge = errors.New("the list of desired objects is too large")

// room returns an error if the list would exceed its limit with more items.
func (l *itemList) room(more []item, limit uint64) error {
	size := l.size
	for _, i := range more {
		if size += i.size + itemBytes; uint64(size) > limit { //nolint:gosec // not negative
			return fmt.Errorf(
				"%w: it takes more than %d bytes, each object counted with its size and %d bytes more", errLarge,
				limit, itemBytes)
		}
	}
	return nil
}

// messages returns the desired objects.
func (l *itemList) messages() []*hookv1.DesiredObject {
	if len(l.items) == 0 {
		return nil
	}
	out := make([]*hookv1.DesiredObject, len(l.items))
	for n, i := range l.items {
		out[n] = i.message
	}
	return out
}
