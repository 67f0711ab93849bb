// Package clock is internal.
package clock

// Time is exported within the repository only.
type Time int

// Zero is the first time.
const Zero Time = 0
