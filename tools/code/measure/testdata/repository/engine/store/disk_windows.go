package store

// On Windows alone, an import adds no edge.
import _ "example.com/shop/gen/shop"
