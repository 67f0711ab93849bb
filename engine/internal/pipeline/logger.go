package pipeline

import "github.com/go-logr/logr"

// syncSink is the log sink of one sync. It adds the sync's values to a message when there is one,
// because most syncs log nothing.
type syncSink struct {
	base   logr.Logger
	values func() []any
}

var _ logr.LogSink = (*syncSink)(nil)

// callDepth are the frames between the caller of a message and base: the outer Logger and the sink.
const callDepth = 2

// Init implements logr.LogSink. The base is initialized already.
func (*syncSink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (s *syncSink) Enabled(level int) bool { return s.base.V(level).Enabled() }

// Info implements logr.LogSink.
func (s *syncSink) Info(level int, message string, keysAndValues ...any) {
	s.logger().WithCallDepth(callDepth).V(level).Info(message, keysAndValues...)
}

// Error implements logr.LogSink.
func (s *syncSink) Error(err error, message string, keysAndValues ...any) {
	s.logger().WithCallDepth(callDepth).Error(err, message, keysAndValues...)
}

// WithValues implements logr.LogSink.
func (s *syncSink) WithValues(keysAndValues ...any) logr.LogSink {
	return s.logger().WithValues(keysAndValues...).GetSink()
}

// WithName implements logr.LogSink.
func (s *syncSink) WithName(name string) logr.LogSink { return s.logger().WithName(name).GetSink() }

func (s *syncSink) logger() logr.Logger { return s.base.WithValues(s.values()...) }

// logValues identify the sync in the log.
func (r *run) logValues() []any {
	values := []any{"parent", r.item.Key.Parent.NamespacedName()}
	if r.isPart() {
		values = append(values, "part", r.item.Key.Part)
	}
	if sc := r.span.SpanContext(); sc.IsValid() {
		values = append(values, "trace_id", sc.TraceID().String(), "span_id", sc.SpanID().String())
	}
	return values
}
