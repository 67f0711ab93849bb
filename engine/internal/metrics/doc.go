// Package metrics defines the metrics of the engine. Each file defines those of one part: their
// names, labels and help texts, and the methods that the part calls when something happens.
//
// To add a metric, define it in the file of its part, call it where the thing happens, and run
// "make gen" for the reference (docs/reference/metrics.md). A metric with the label controller is
// registered with [Series], which forgets the series of a controller that stopped.
//
// Nothing here decides anything: the engine works the same with any Registerer.
package metrics
