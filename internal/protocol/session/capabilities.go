package session

import (
	"slices"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
)

// The optional features of a session. A feature is used only if both sides have it.
const (
	changes      = streamv1.Capability_CAPABILITY_CHANGES
	objectHashes = streamv1.Capability_CAPABILITY_OBJECT_HASHES
	fragments    = streamv1.Capability_CAPABILITY_FRAGMENTS
	resume       = streamv1.Capability_CAPABILITY_RESUME
)

// allCapabilities are the features that both sides of this package have.
var allCapabilities = []streamv1.Capability{changes, objectHashes, fragments, resume}

// capabilities are the features that both sides of a session have.
type capabilities []streamv1.Capability

// common returns the features that both sides named. Unknown values have no effect.
func common(ours, theirs []streamv1.Capability) capabilities {
	return slices.DeleteFunc(slices.Clone(ours), func(c streamv1.Capability) bool { return !slices.Contains(theirs, c) })
}

func (c capabilities) has(feature streamv1.Capability) bool { return slices.Contains(c, feature) }
