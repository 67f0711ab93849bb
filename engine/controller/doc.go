// Package controller runs controllers that are written in Go. A controller reconciles the objects
// of one type, and may watch further types:
//
//	restarts := controller.New[*appsv1.Deployment]("restarts").
//		Watch(controller.TypeOf[*corev1.ConfigMap]()).
//		Reconciler(controller.ReconcileFunc[*appsv1.Deployment](reconcile))
//	config.Controllers = append(config.Controllers, restarts) // server.Config
//
// The reconciler reads from the cache and writes to the API server through its [Request]. Use [Get],
// [List] and [By] to read. There is no need to map events to keys for what it reads: when an object
// that it has read changes, or an object that it has looked for appears, its key is reconciled
// again. A read after a write always shows the write.
//
// A type is a Go type that the scheme of the process has ([New], [TypeOf]; see server.Config.Scheme),
// or a kind without a Go type ([NewFor], [TypeFor]). A read returns an answer or an error. While a
// cache is stale, it returns an error, and never an empty list.
//
// A declaration should be made by one goroutine, and must not be changed once the process runs. The
// reconciler is called for several keys at the same time, but never for one key twice at the same
// time. Package server runs controllers, and package controllertest runs them in tests.
package controller
