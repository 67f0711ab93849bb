// Package memapi runs a Kubernetes API server in memory, for tests of controllers, for offline
// runs, and for controllers from files. Make a [Server] with [New] and connect clients with its
// Config:
//
//	api, err := memapi.New(memapi.Options{CRDs: crds})
//	defer api.Close()
//	client, err := dynamic.NewForConfig(api.Config())
//
// It does not listen on a port: requests arrive through the transport of Config.
//
// It serves the built-in kinds of client-go's scheme and every CustomResourceDefinition that you
// create: discovery, get, list, watch, create, update, the patches, server-side apply, delete, the
// status subresource, finalizers, garbage collection of owned objects and of namespaces, dry runs
// and field validation. It uses the API server's own libraries for strategies, managed fields,
// structural schemas and CEL.
//
// It has no authentication and no admission, and no controllers but the garbage collector. Specs of
// built-in kinds are validated and defaulted only as far as their Go types do. See
// docs/guides/testing-controllers.md for all differences from a real API server.
//
// Requests are processed one after the other, and garbage is collected before a request is
// answered. So after a test has made a change, it sees everything that follows from it.
package memapi
