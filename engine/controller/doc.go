// Package controller runs controllers that are written in Go. A controller reconciles the objects
// of one type, watches further types, and has a reconciler:
//
//	controller.New[*appsv1.Deployment]("restarts").
//		Watch(controller.TypeOf[*corev1.ConfigMap]()).
//		Reconciler(controller.ReconcileFunc[*appsv1.Deployment](reconcile))
//
// The reconciler reads the cache through its Request and writes through it. What it reads becomes
// its key's bound references: an event of an object that it has read, or has looked for in vain,
// reconciles the key again. Every read after a write shows the write.
//
// Types are Go types that the process's scheme has (server.Config.Scheme), or kinds without a Go
// type (NewFor, TypeFor). A read is an answer or an error: an unknown state is never "no objects".
//
// A declaration is made by one goroutine and is immutable once the process runs. Reconciles of
// several keys run at the same time, those of one key one after the other. Package server runs
// controllers; unit tests use a real cache, and test/integration a real API server.
package controller
