// Package kit stands in the folder of tests.
package kit

import _ "example.com/shop/engine/web"

// Wait waits.
func Wait() {}
