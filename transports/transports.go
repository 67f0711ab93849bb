// Package transports has what all transports of hooks share in public. Each folder beside this file
// is one transport: it opens hooks of one field of a hook's spec (package hook: Opener).
//
// To write a transport of your own, implement hook.Opener, convert questions and answers with
// package codec, run the suite of package transporttest, and pass the opener to
// server.Config.Transports.
package transports

import (
	"github.com/hookloop/hookloop/transports/internal/endpoint"
	"github.com/hookloop/hookloop/transports/internal/stream"
	"github.com/prometheus/client_golang/prometheus"
)

// SecretPolicy restricts the destinations of Secrets' values.
type SecretPolicy = endpoint.Policy

// StreamMetrics count the activity of all streams.
type StreamMetrics = stream.Metrics

// NewStreamMetrics registers the metrics.
func NewStreamMetrics(registry prometheus.Registerer) *StreamMetrics {
	return stream.NewMetrics(registry)
}
