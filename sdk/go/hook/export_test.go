package hook

import "time"

// Hurry shortens the intervals between attempts to dial in.
func (o *AttachOptions) Hurry() {
	o.retry = retryIntervals{first: time.Millisecond, longest: 5 * time.Millisecond, refused: 5 * time.Millisecond}
}
