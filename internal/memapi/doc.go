// Package memapi is a Kubernetes API server in memory, for tests of controllers, and for the
// controllers of files (package overlay).
//
// It serves the built-in kinds of client-go's scheme and every CustomResourceDefinition that is
// created: discovery, get, list, watch, create, update, the patches, server-side apply, delete, the
// status subresource, finalizers, the garbage collection of owned objects and of namespaces, dry
// runs and field validation. It uses the API server's own libraries for strategies, managed fields,
// structural schemas and CEL. Nothing listens on a port: the clients' requests arrive through the
// transport of Config.
//
// It has no authentication, admission or controllers besides the garbage collector, and does not
// validate or default the specs of built-in kinds beyond their Go types. The differences from a
// real API server are listed in docs/guides/testing-controllers.md, and test/memapi compares the
// two.
//
// All requests are processed one after the other, and the garbage is collected before a request is
// answered. So a test that has made a change sees all that follows from it.
package memapi
