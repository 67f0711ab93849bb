// Package manifest reads Kubernetes objects from files as kubectl's -f does. Call [Read] with the
// paths, then use the objects of the [Set], or its Controllers and CRDs.
//
// It knows the line and column of each field. Use Errorf of an object to make an error that names
// the place.
//
// Read limits the bytes, the documents and the size that aliases expand to, before it builds any
// value. It applies no schema and asks no cluster. A Set and its objects do not change, so they are
// safe for concurrent use.
package manifest
