// Package manifest reads Kubernetes objects from files, as kubectl's -f does, and keeps the line
// and column of each field, so that an error about an object names its place.
//
// Read takes files, directories and stdin. It limits the bytes, the documents, and the size that
// aliases expand to, before it builds values. The package applies no schema and asks no cluster.
// Client commands use it: validate, rbac, render, dev, serve.
//
// A Set and its objects do not change after Read, so that they are safe for concurrent use. Tests
// read files that are made to be wrong, and compare the errors with golden files.
package manifest
