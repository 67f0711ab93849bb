// Package controllertest runs controllers in Go and actors in tests:
//
//	env := controllertest.New(t, controllertest.Options{Objects: []controllertest.Object{shop}})
//	env.Run(shops.Controller())
//	env.UntilQuiet(t.Context())
//	deployment := controllertest.Get[*appsv1.Deployment](env, controllertest.KeyOf(shop))
//
// The API server runs in memory, without a port or another process. It behaves as a real one does:
// resourceVersions, generations, finalizers, garbage collection, the status subresource, server-side
// apply, and schemas with defaults and CEL rules. The controllers run as in a process, on the same
// cache, writer and queue.
//
// Use [Env.UntilQuiet] to wait until no controller has anything to do, so that a test needs no
// sleep. Use [Env.Step] to reconcile one key at a time, [Env.Audit] to get the writes, and [Hold] and
// [Fail] to make caches stale and requests fail.
//
// To run the same tests on a real control plane, set the environment variable
// HOOKLOOP_TEST_KUBECONFIG or the flag -controllertest.kubeconfig. The page
// docs/guides/testing-controllers.md lists the differences.
//
// An Env belongs to one test. Call its methods from the goroutine of the test only.
package controllertest
