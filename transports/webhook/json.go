package webhook

import "github.com/hookloop/hookloop/engine/hook"

// Encode returns a question as JSON of version "v1" or "v2", as the hook gets it. The JSON holds no
// related objects that could not be read: check [hook.RelatedGroup.Err] first.
func Encode(q *hook.Question, version string) []byte { return encode(q, version).bytes() }

// Compress returns the JSON of a question as a hook gets it that accepts gzip.
func Compress(data []byte) []byte { return (&requestBody{text: data}).compress().text }

// Decode decodes the JSON of an answer to a question. If strict is set, it rejects unknown and
// duplicate fields. The error says which part is wrong, and should become a [hook.Error] of the kind
// [hook.Invalid].
func Decode(q *hook.Question, version string, data []byte, strict bool) (*hook.Answer, error) {
	return read(q, version, data, strict)
}
