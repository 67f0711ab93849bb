// Package ignored says what does not count.
package ignored

// Ignored is not counted.
func Ignored() {}
