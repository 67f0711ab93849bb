package jsonmap

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync"
)

// maxKept bounds the buffer of an encoder that is used again.
const maxKept = 64 << 10

// Encode returns a value of decoded JSON as json.Marshal does: members in order of their names, and
// the characters <, > and & escaped. Values of other types are left to json.Marshal.
func Encode(v any) ([]byte, error) { return Append(nil, v) }

// Append is Encode that appends to out. After an error the result is nil.
func Append(out []byte, v any) ([]byte, error) {
	e := encoders.Get().(*encoder)
	e.out = e.out[:0]
	e.names = e.names[:0]
	err := e.value(v)
	out = append(out, e.out...)
	if cap(e.out) <= maxKept {
		encoders.Put(e)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// encoder appends JSON to out. names is a stack of the names of the open objects.
type encoder struct {
	out   []byte
	names []string
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

func (e *encoder) value(v any) error {
	switch v := v.(type) {
	case map[string]any:
		return e.object(v)
	case []any:
		return e.array(v)
	case string:
		return e.text(v)
	case int64:
		e.out = strconv.AppendInt(e.out, v, 10)
	case bool:
		e.out = strconv.AppendBool(e.out, v)
	case nil:
		e.out = append(e.out, "null"...)
	default:
		return e.other(v)
	}
	return nil
}

func (e *encoder) object(m map[string]any) error {
	if m == nil {
		return e.value(nil)
	}
	start := len(e.names)
	e.names = slices.AppendSeq(e.names, maps.Keys(m))
	end := len(e.names)
	slices.Sort(e.names[start:end])
	e.out = append(e.out, '{')
	for i := start; i < end; i++ {
		if i > start {
			e.out = append(e.out, ',')
		}
		name := e.names[i]
		if err := e.text(name); err != nil {
			return err
		}
		e.out = append(e.out, ':')
		if err := e.value(m[name]); err != nil {
			return err
		}
	}
	e.out = append(e.out, '}')
	clear(e.names[start:end])
	e.names = e.names[:start]
	return nil
}

func (e *encoder) array(all []any) error {
	if all == nil {
		return e.value(nil)
	}
	e.out = append(e.out, '[')
	for i, v := range all {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		if err := e.value(v); err != nil {
			return err
		}
	}
	e.out = append(e.out, ']')
	return nil
}

// text writes a string. Characters beside those of most texts are left to json.Marshal.
func (e *encoder) text(s string) error {
	begin := len(e.out)
	e.out = append(e.out, '"')
	start := 0
	for i := range len(s) {
		b := s[i]
		if plain[b] {
			continue
		}
		e.out = append(e.out, s[start:i]...)
		start = i + 1
		switch b {
		case '"', '\\':
			e.out = append(e.out, '\\', b)
		case '\n':
			e.out = append(e.out, '\\', 'n')
		default:
			e.out = e.out[:begin]
			return e.other(s)
		}
	}
	e.out = append(append(e.out, s[start:]...), '"')
	return nil
}

// plain are the bytes that a JSON string holds without an escape.
var plain = func() (plain [256]bool) {
	for b := ' '; b <= '~'; b++ {
		plain[b] = b != '"' && b != '\\' && b != '<' && b != '>' && b != '&'
	}
	return plain
}()

func (e *encoder) other(v any) error {
	data, err := json.Marshal(v)
	e.out = append(e.out, data...)
	return err
}
