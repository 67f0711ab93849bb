// Package actor runs controllers that are written as actors. An [Actor] looks at one object and
// returns the next [Action], or nil when nothing is left to do. The package does the rest: it adds
// the finalizer, repeats the question after each action, waits for dependencies, and writes
// conditions, Events, spans and metrics.
//
//	logs := actor.New("log-service", logServiceActor{}).
//		Owns(actor.TypeOf[*appsv1.StatefulSet]())
//	config.Controllers = append(config.Controllers, logs) // server.Config
//
// An actor should not keep state of its own, because all that it needs is in the API server. It does
// not have to poll: when something changes that it has read through its [Context], it is asked
// again.
//
// Objects may depend on other objects; see [Require] and [Dependent]. An object waits until its
// dependencies are met, and is finalized only when no other object depends on it.
//
// A declaration should be made by one goroutine, and must not be changed once the process runs. An
// Actor is called for several objects at the same time, but never for one object twice at the same
// time. The package builds on package controller; use that one for a controller that is not a
// sequence of steps.
package actor
