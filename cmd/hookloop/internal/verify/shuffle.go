package verify

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

// shuffles is the number of other orders in which a question is asked.
const shuffles = 4

// shuffled returns a question with another order of the keys of its objects, and of the objects of
// each group. Both have no meaning. The first order is the reverse; the others are arbitrary, and
// the same in each run.
func shuffled(q *hook.Question, number int) *hook.Question {
	source := rand.New(rand.NewPCG(1, uint64(number))) //nolint:gosec // an order, not a secret
	order := func(n int, swap func(i, j int)) {
		if number > 0 {
			source.Shuffle(n, swap)
			return
		}
		for i := range n / 2 {
			swap(i, n-1-i)
		}
	}
	other := *q
	other.Parent = reordered(q.Parent, order)
	if q.Input != nil {
		other.Input = reordered(q.Input, order)
	}
	other.Children = slices.Clone(q.Children)
	for i := range other.Children {
		other.Children[i].Objects = reorderedAll(q.Children[i].Objects, order)
	}
	other.Related = slices.Clone(q.Related)
	for i := range other.Related {
		other.Related[i].Objects = reorderedAll(q.Related[i].Objects, order)
	}
	return &other
}

type orderFunc func(n int, swap func(i, j int))

func reorderedAll(objects []*object.Object, order orderFunc) []*object.Object {
	out := make([]*object.Object, len(objects))
	for i, o := range objects {
		out[i] = reordered(o, order)
	}
	order(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// reordered returns an object with another order of its keys, or the object itself if it cannot be
// encoded.
func reordered(o *object.Object, order orderFunc) *object.Object {
	m, err := o.Map()
	if err != nil {
		return o
	}
	var b bytes.Buffer
	writeReordered(&b, m, order)
	again, err := object.Decode(b.Bytes())
	if err != nil {
		return o
	}
	return again
}

func writeReordered(b *bytes.Buffer, value any, order orderFunc) {
	switch v := value.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		order(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		b.WriteByte('{')
		for i, key := range keys {
			if i > 0 {
				b.WriteByte(',')
			}
			writeValue(b, key)
			b.WriteByte(':')
			writeReordered(b, v[key], order)
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeReordered(b, item, order)
		}
		b.WriteByte(']')
	default:
		writeValue(b, v)
	}
}

func writeValue(b *bytes.Buffer, value any) {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // a decoded value; it ends with a line break, which JSON allows
}
