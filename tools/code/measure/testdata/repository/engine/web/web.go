// Package web says what is sold. It stands on store.
package web

import (
	"example.com/shop/engine/internal/clock"
	"example.com/shop/engine/store"
)

// Page is told where things are; what it shows, whose they are, and if they are there.
type Page[T any] struct{ items []T }

// Add is a method of an exported type.
func (p *Page[T]) Add(item T) { p.items = append(p.items, item) }

type hidden struct{}

// Visible is a method of a type that is not exported.
func (hidden) Visible() {}

// Open and the constants are exported, and the directive below is no comment.
//
//go:noinline
func Open(name string) *Page[store.Item] {
	_ = "// says what: a string is no comment"
	return &Page[store.Item]{items: []store.Item{{Name: name, At: clock.Zero}}}
}

// Two constants in one line, two variables of which one is exported.
const First, Second = 1, 2

var (
	Third  = 3
	fourth = 4 /* what */
)
