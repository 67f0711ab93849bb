// Package controllertest runs controllers and actors of packages controller and actor in tests:
//
//	env := controllertest.New(t, controllertest.Options{Objects: []controllertest.Object{shop}})
//	env.Run(shops.Controller())
//	env.UntilQuiet(t.Context())
//	deployment := controllertest.Get[*appsv1.Deployment](env, controllertest.KeyOf(shop))
//
// The API server is in memory, without a port or another process, and has the semantics of a real
// one: resourceVersions, generations, finalizers, the collection of owned objects, the status
// subresource, server-side apply, schemas with defaults and CEL rules. The controllers are those of
// the process: the same cache, writer and queue.
//
// UntilQuiet waits until no controller has anything to do, so a test needs no sleep. Step
// reconciles one key, for tests of the order. Audit returns the writes. Hold and Fail make caches
// stale and requests fail.
//
// With a kubeconfig (the environment variable HOOKLOOP_TEST_KUBECONFIG or the flag
// -controllertest.kubeconfig) the same test runs on that control plane. The docs page
// testing-controllers.md lists the differences.
//
// An Env belongs to one test. Its methods are called from the test's goroutine.
package controllertest
