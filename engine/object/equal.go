package object

import (
	"bytes"
	"slices"
)

// versionField precedes the value of metadata.resourceVersion in Raw.
const versionField = `"resourceVersion":"`

// EqualButVersion reports whether two objects are equal apart from metadata.resourceVersion. It
// compares the text of [Object.Raw], so it may report false if only the order of members differs.
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

// EqualRecords reports whether [Object.LastApplied] and the fields of all managers
// ([Object.Applied]) are equal in two objects.
func EqualRecords(a, b *Object) bool {
	return a.LastApplied() == b.LastApplied() &&
		slices.EqualFunc(a.extras().applied, b.extras().applied, func(a, b applied) bool {
			return a.manager == b.manager && bytes.Equal(a.fieldsV1, b.fieldsV1)
		})
}
