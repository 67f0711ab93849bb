// Package shop is generated, and a node of the graph.
package shop

// Message says what is generated.
type Message struct{}
