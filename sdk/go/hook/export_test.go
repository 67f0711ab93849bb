package hook

import "time"

// Hurry makes the waits between attempts to dial in short.
func (o *AttachOptions) Hurry() {
	o.waits = waits{first: time.Millisecond, longest: 5 * time.Millisecond, refused: 5 * time.Millisecond}
}
