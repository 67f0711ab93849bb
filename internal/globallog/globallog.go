// Package globallog sets klog's global logger, which the background work of client-go and of the
// API server's libraries uses.
//
// klog can set it only while nothing logs: a second logger would be a data race with the work of
// the first user. The lines of the engine itself go to the logger of their context instead. It is
// tested by its users, under the race detector.
package globallog

import (
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

var once sync.Once

// Set sets the logger if no call has done so before; the first logger stays. Call it before work
// that logs.
func Set(log logr.Logger) {
	once.Do(func() { klog.SetLoggerWithOptions(log, klog.ContextualLogger(true)) })
}
