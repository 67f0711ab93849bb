package hook

import (
	"bytes"
	"context"
	"encoding/json"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
)

// recall is the last answer about a parent, so that what is the same in the next is not written
// again. Streams keep one for each parent.
type recall struct{ before, after []encoded }

// encoded is a desired object as it was written.
type encoded struct {
	// source is what the object marshalled to; nil where the answer says more about it, which the
	// JSON does not show.
	source  []byte
	message *hookv1.DesiredObject
}

type recallKey struct{}

func withRecall(ctx context.Context, r *recall) context.Context {
	return context.WithValue(ctx, recallKey{}, r)
}

// recallOf is the recall of a call; one that remembers nothing for calls without.
func recallOf(ctx context.Context) *recall {
	if r, ok := ctx.Value(recallKey{}).(*recall); ok {
		return r
	}
	return &recall{}
}

// encode writes the object at one place of an answer.
func (r *recall) encode(place int, child Child) (*hookv1.DesiredObject, error) {
	var before encoded
	if place < len(r.before) {
		before = r.before[place]
	}
	e, err := before.next(child)
	if err != nil {
		return nil, err
	}
	r.after = append(r.after, e)
	return e.message, nil
}

// next writes an object, or finds it the same as before.
func (e encoded) next(child Child) (encoded, error) {
	if !child.isPlain() {
		m, err := child.encode()
		return encoded{message: m}, err
	}
	if raw, ok := child.Object.(json.RawMessage); ok && e.wrote(raw) {
		return e, nil
	}
	data, err := json.Marshal(child.Object)
	if err != nil {
		return encoded{}, err
	}
	if e.wrote(data) {
		return e, nil
	}
	body, err := checkDesired(child.Object, data)
	return encoded{data, &hookv1.DesiredObject{Encoding: hookv1.Encoding_ENCODING_JSON, Body: body}}, err
}

func (e encoded) wrote(data []byte) bool { return e.source != nil && bytes.Equal(e.source, data) }
