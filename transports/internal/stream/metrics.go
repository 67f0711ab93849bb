package stream

import (
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/protocol/session"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"google.golang.org/protobuf/proto"
)

// Metrics counts what happens on all streams.
type Metrics struct {
	calls, repeats, subjects, bytes *prometheus.CounterVec
}

// NewMetrics registers the metrics. Like MustRegister, it panics if they are already registered.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	auto := promauto.With(registry)
	vector := func(name, help, label string) *prometheus.CounterVec {
		return auto.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	}
	return &Metrics{
		calls: vector("hookloop_stream_calls_total",
			"Calls over streams, by what they carried: a snapshot of all objects, or a change since the last call.", "set"),
		repeats: vector(
			"hookloop_stream_repeats_total",
			"Questions asked again with everything, by the cause: nack, where the hook missed something, "+
				"or mismatch, where the engine did.",
			"cause",
		),
		subjects: vector("hookloop_stream_reconnected_subjects_total",
			"Parents known on a stream that was lost, by what became of them: kept by the hook, or lost.", "state"),
		bytes: vector("hookloop_stream_bytes_total", "Bytes of messages, by direction: sent to hooks, or received.",
			"direction"),
	}
}

// add adds what was counted since before.
func (m *Metrics) add(before, now session.Counts) {
	add := func(v *prometheus.CounterVec, label string, before, now uint64) {
		if now > before {
			v.WithLabelValues(label).Add(float64(now - before))
		}
	}
	add(m.calls, "snapshot", before.Snapshots, now.Snapshots)
	add(m.calls, "change", before.Changes, now.Changes)
	add(m.repeats, "nack", before.Nacks, now.Nacks)
	add(m.repeats, "mismatch", before.Mismatches, now.Mismatches)
	add(m.subjects, "kept", before.Resumed, now.Resumed)
	add(m.subjects, "lost", before.Dropped, now.Dropped)
}

func (m *Metrics) sent(message *streamv1.EngineMessage)   { m.count("sent", message) }
func (m *Metrics) received(message *streamv1.HookMessage) { m.count("received", message) }

func (m *Metrics) count(direction string, message proto.Message) {
	if m != nil {
		m.bytes.WithLabelValues(direction).Add(float64(proto.Size(message)))
	}
}
