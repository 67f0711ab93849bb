package webhook

import "github.com/hookloop/hookloop/engine/hook"

// Encode returns a question as the JSON of a version, as Ask posts it.
func Encode(q *hook.Question, version string) []byte { return encode(q, version).bytes() }

// Compress returns the JSON of a question as it is posted to a hook that accepts gzip.
func Compress(data []byte) []byte { return (&requestBody{text: data}).compress().text }

// Decode decodes the JSON of a response, as Ask does. In strict mode it rejects unknown and
// duplicate fields. The error describes the invalid part.
func Decode(q *hook.Question, version string, data []byte, strict bool) (*hook.Answer, error) {
	return read(q, version, data, strict)
}
