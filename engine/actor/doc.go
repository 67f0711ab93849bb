// Package actor runs controllers that are written as actors. An Actor observes an object and
// returns the next Action; the package does the rest: finalizer, loop, dependencies between
// objects, conditions, Events, spans and metrics.
//
//	actor.New("log-service", logServiceActor{}).Owns(actor.TypeOf[*appsv1.StatefulSet]())
//
// An actor keeps no state of its own: everything it knows is in the API server. It is never polled:
// what it reads through its Context brings the object back when it changes.
//
// Objects may depend on other objects (Require, Dependent). An object waits until its dependencies
// are met, and is finalized only when no other object depends on it.
//
// A declaration is made by one goroutine and is immutable once the process runs. The Actor's
// methods are called for several objects at the same time, for one object one after the other. The
// package builds on package controller. Unit tests cover the decisions, and test/integration runs
// actors on a real API server.
package actor
