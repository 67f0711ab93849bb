package session

import (
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/protobuf/proto"
)

// split cuts a serialized message into fragments.
func split(data []byte) []*streamv1.Fragment {
	var out []*streamv1.Fragment
	total := uint64(len(data))
	for index := uint32(0); len(data) > 0; index++ {
		n := min(len(data), fragmentBytes)
		out = append(out, &streamv1.Fragment{Index: index, TotalBytes: total, Data: data[:n]})
		data = data[n:]
	}
	return out
}

// fragmented returns a message, or its fragments if it is large.
func fragmented[M proto.Message](m M, size int, wrap func(*streamv1.Fragment) M) []M {
	if size <= fragmentBytes {
		return []M{m}
	}
	data, err := proto.Marshal(m)
	if err != nil {
		return []M{m} // the transport will return the same error
	}
	var out []M
	for _, f := range split(data) {
		out = append(out, wrap(f))
	}
	return out
}

// assembler reassembles a message from fragments. While a message is incomplete, len(data) < total
// <= limit; otherwise total is 0.
type assembler struct {
	limit uint64
	total uint64
	next  uint32
	data  []byte
}

// add adds a fragment. It returns the whole message with the last fragment, and nil before. Memory
// is allocated only for data that has arrived, not for the announced total.
func (a *assembler) add(f *streamv1.Fragment) ([]byte, error) {
	n := uint64(len(f.GetData()))
	if a.total == 0 {
		a.total = f.GetTotalBytes()
	}
	switch {
	case a.total > a.limit:
		return nil, protocolError("a message of %d bytes is larger than the maximum of %d", a.total, a.limit)
	case f.GetIndex() != a.next || f.GetTotalBytes() != a.total:
		return nil, protocolError("fragment %d of %d bytes, expected fragment %d of %d bytes", f.GetIndex(),
			f.GetTotalBytes(),
			a.next, a.total)
	case n == 0 || n > fragmentBytes || n > a.total-uint64(len(a.data)):
		return nil, protocolError("fragment %d has %d bytes, expected 1 to %d", a.next, n,
			min(fragmentBytes, a.total-uint64(len(a.data))))
	}
	a.next++
	a.data = append(a.data, f.GetData()...)
	if uint64(len(a.data)) < a.total {
		return nil, nil
	}
	whole := a.data
	*a = assembler{limit: a.limit}
	return whole, nil
}

// busy reports whether a message is incomplete. Then only its next fragment is valid.
func (a *assembler) busy() bool { return a.total > 0 }
