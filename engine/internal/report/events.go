// Package report records the results of a sync: the parent's status, conditions and Events. It
// writes nothing if nothing has changed.
//
// It does not decide what to record: the pipeline's error table and the supervisor do. Statuses go
// through a StatusWriter (package act), Events through client-go's recorder, which merges and
// limits them. Its values are safe for concurrent use. Table tests cover the pure functions; the
// others run against a real API server (test/integration).
package report

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// MaxMessage bounds the text of Events and conditions, in bytes. The API server's own limit for
// Events is 1024.
const MaxMessage = 1000

// EventConfig configures Events.
type EventConfig struct {
	Client typedcorev1.EventsGetter
	// Component is the Events' source.
	Component string
	// QPS and Burst limit the Events about one object (flags events-qps, events-burst).
	QPS   float32
	Burst int
	// LogOnly reports that Events about objects of a kind are written to the log alone; nil reports
	// that of no kind.
	LogOnly func(schema.GroupVersionKind) bool
}

// Events records Events on objects.
type Events struct {
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorder
	logOnly     func(schema.GroupVersionKind) bool
}

// NewEvents starts a recorder, which runs until Stop.
func NewEvents(ctx context.Context, s EventConfig) *Events {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx),
		record.WithCorrelatorOptions(record.CorrelatorOptions{QPS: s.QPS, BurstSize: s.Burst}))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: s.Client.Events("")})
	if s.LogOnly == nil {
		s.LogOnly = func(schema.GroupVersionKind) bool { return false }
	}
	return &Events{
		logOnly:     s.LogOnly,
		broadcaster: broadcaster,
		recorder:    broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: s.Component}),
	}
}

// Stop stops the recorder and drops Events that are not sent yet.
func (e *Events) Stop() { e.broadcaster.Shutdown() }

// Normal records an Event of type Normal about o and writes it to the log.
func (e *Events) Normal(ctx context.Context, o *object.Object, reason, message string) {
	e.record(ctx, o, corev1.EventTypeNormal, reason, message)
}

// Warning records an Event of type Warning about o and writes it to the log.
func (e *Events) Warning(ctx context.Context, o *object.Object, reason, message string) {
	e.record(ctx, o, corev1.EventTypeWarning, reason, message)
}

// WarningUnlogged records an Event of type Warning about o. The caller has logged its cause.
func (e *Events) WarningUnlogged(o *object.Object, reason, message string) {
	if !e.logOnly(o.GVK()) {
		e.recorder.Event(reference(o), corev1.EventTypeWarning, reason, Shorten(message, MaxMessage))
	}
}

func (e *Events) record(ctx context.Context, o *object.Object, kind, reason, message string) {
	message = Shorten(message, MaxMessage)
	klog.FromContext(ctx).Info("event", "type", kind, "reason", reason, "object", o.Ref().String(), "message", message)
	if e.logOnly(o.GVK()) {
		return
	}
	e.recorder.AnnotatedEventf(reference(o), traceOf(ctx), kind, reason, "%s", message)
}

// TraceAnnotation on an Event is the id of the trace in which it was recorded first.
const TraceAnnotation = "hookloop.dev/trace-id"

// traceOf returns the annotation for an Event that is recorded under ctx; nil if its trace is not
// exported.
func traceOf(ctx context.Context) map[string]string {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsSampled() {
		return nil
	}
	return map[string]string{TraceAnnotation: sc.TraceID().String()}
}

func reference(o *object.Object) runtime.Object {
	return &corev1.ObjectReference{
		APIVersion: o.GVK().GroupVersion().String(), Kind: o.GVK().Kind, Namespace: o.Namespace(), Name: o.Name(),
		UID: o.UID(), ResourceVersion: o.ResourceVersion(),
	}
}

// unprintable reports whether a rune is invisible: a control character, or one that changes the
// direction of text.
func unprintable(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }

// Shorten makes text one line of printable text of at most limit bytes, cut between runes. It
// separates lines, such as those of joined errors, by semicolons unless they end with a punctuation
// mark.
func Shorten(text string, limit int) string {
	var lines []string
	for line := range strings.Lines(strings.ToValidUTF8(text, "\uFFFD")) {
		line = strings.TrimSpace(strings.Join(strings.FieldsFunc(line, unprintable), " "))
		if line == "" {
			continue
		}
		if n := len(lines); n > 0 && !strings.ContainsAny(lines[n-1][len(lines[n-1])-1:], ".,:;!?") {
			lines[n-1] += ";"
		}
		lines = append(lines, line)
	}
	text = strings.Join(lines, " ")
	if len(text) <= limit {
		return text
	}
	cut := limit - len("…")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
