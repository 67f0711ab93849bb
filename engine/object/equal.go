package object

import (
	"bytes"
	"slices"
)

// versionField comes before the value of metadata.resourceVersion in Raw.
const versionField = `"resourceVersion":"`

// EqualButVersion reports whether the JSON of two objects (Raw) differs in metadata.resourceVersion
// only, or not at all. It compares text: with members in another order, it may report false.
func EqualButVersion(a, b *Object) bool {
	x := a.Raw()
	y := b.Raw()
	before := versionField + a.ResourceVersion() + `"`
	after := versionField + b.ResourceVersion() + `"`
	if before == after {
		return bytes.Equal(x, y)
	}
	if len(x)-len(before) != len(y)-len(after) {
		return false
	}
	at := bytes.Index(x, []byte(before))
	return at >= 0 && bytes.Equal(x[:at], y[:at]) && bytes.HasPrefix(y[at:], []byte(after)) &&
		bytes.Equal(x[at+len(before):], y[at+len(after):])
}

// EqualRecords reports whether two objects carry the same records of dynamic and server-side
// apply: LastApplied, and Applied for all managers.
func EqualRecords(a, b *Object) bool {
	return a.LastApplied() == b.LastApplied() &&
		slices.EqualFunc(a.rest().applied, b.rest().applied, func(a, b applied) bool {
			return a.manager == b.manager && bytes.Equal(a.fieldsV1, b.fieldsV1)
		})
}
