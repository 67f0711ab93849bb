package session

import (
	"slices"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
)

// A session uses an optional feature only if both sides support it.
const (
	changes      = streamv1.Capability_CAPABILITY_CHANGES
	objectHashes = streamv1.Capability_CAPABILITY_OBJECT_HASHES
	fragments    = streamv1.Capability_CAPABILITY_FRAGMENTS
	resume       = streamv1.Capability_CAPABILITY_RESUME
)

// allCapabilities lists what this package supports on both sides.
var allCapabilities = []streamv1.Capability{changes, objectHashes, fragments, resume}

// capabilities says which features both sides support.
type capabilities []streamv1.Capability

// common returns the features that both sides named. Unknown values are ignored.
func common(ours, theirs []streamv1.Capability) capabilities {
	return slices.DeleteFunc(slices.Clone(ours), func(c streamv1.Capability) bool { return !slices.Contains(theirs, c) })
}

func (c capabilities) has(feature streamv1.Capability) bool { return slices.Contains(c, feature) }
