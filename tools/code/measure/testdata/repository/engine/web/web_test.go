package web

import (
	"testing"

	"example.com/shop/engine/web/webtest"
)

// TestOpen says what tests say; the import of webtest is no edge.
func TestOpen(t *testing.T) {
	webtest.Check(t, Open("x"))
}
