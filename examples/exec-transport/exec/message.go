package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/webhook"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
)

// Question is the line that a program reads.
type Question struct {
	// ID must be in the answer.
	ID uint64 `json:"id"`
	// Kind is the kind of the controller: composite, decorator or map.
	Kind hook.ControllerKind `json:"kind"`
	// Operation is what the hook should do: sync, finalize, customize, map or tombstone.
	Operation hook.Op `json:"operation"`
	// TimeoutSeconds is how much time is left for the answer.
	TimeoutSeconds float64 `json:"timeoutSeconds"`
	// Engine is the version of the engine.
	Engine string `json:"engine,omitempty"`
	// Trace holds the trace context, in the fields that the propagator of OpenTelemetry sets:
	// traceparent (W3C), by default.
	Trace map[string]string `json:"trace,omitempty"`
	// Request is the body of a webhook of version v2.
	Request json.RawMessage `json:"request"`
}

// Answer is the line that a program prints. It must have a response or an error.
type Answer struct {
	// ID is that of the question.
	ID uint64 `json:"id"`
	// Response is the body of a webhook's response of version v2.
	Response json.RawMessage `json:"response"`
	// Error says why there is no response.
	Error *Failure `json:"error"`
}

// Failure is a hook's error. Its message is shown on the parent.
type Failure struct {
	Message string `json:"message"`
	// Kind is failed (the default: ask again with backoff), throttled (ask again later) or rejected
	// (do not ask again before something changes).
	Kind string `json:"kind"`
	// Reason is one word in CamelCase for the condition of the parent; it may be empty.
	Reason string `json:"reason"`
	// RetryAfterSeconds is when to ask again; 0 leaves it to the backoff.
	RetryAfterSeconds float64 `json:"retryAfterSeconds"`
}

// encode returns the line of a question.
func encode(ctx context.Context, id uint64, engine string, q *hook.Question) ([]byte, error) {
	request := webhook.Encode(q, "v2")
	envelope := Question{
		ID:        id,
		Kind:      q.Kind,
		Operation: q.Op,
		Engine:    engine,
		Trace:     map[string]string{},
		Request:   []byte("0"),
	}
	otel.GetTextMapPropagator().Inject(ctx, propagation.MapCarrier(envelope.Trace))
	if deadline, ok := ctx.Deadline(); ok {
		envelope.TimeoutSeconds = time.Until(deadline).Seconds()
	}
	head, err := json.Marshal(envelope)
	if err != nil {
		return nil, err
	}
	head = bytes.TrimSuffix(head, []byte("0}")) // the request is large and is JSON already: do not encode it again
	line := make([]byte, 0, len(head)+len(request)+2)
	line = append(line, head...)
	line = append(line, request...)
	// In JSON a line end can only be white space between values.
	for i, c := range line {
		if c == '\n' || c == '\r' {
			line[i] = ' '
		}
	}
	return append(line, '}', '\n'), nil
}

// decode returns the answer in a program's line, or the error that the hook reports as a
// *hook.Error. Any other error describes a line that is no answer to the question.
func (c *client) decode(q *hook.Question, id uint64, line []byte) (*hook.Answer, error) {
	var answer Answer
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&answer); err != nil {
		return nil, fmt.Errorf("the program printed %.80q, expected one line of JSON with id and response (%.200q); "+
			"write messages to standard error", line, err.Error())
	}
	switch {
	case answer.ID != id:
		return nil, fmt.Errorf("the program answered question %d, expected an answer to question %d: "+
			"print one line for each question", answer.ID, id)
	case answer.Error != nil:
		return nil, c.failure(answer.Error)
	case len(answer.Response) == 0:
		return nil, errors.New("the answer has neither response nor error")
	}
	return webhook.Decode(q, "v2", answer.Response, true)
}

// failure returns the port's error for the error of a hook.
func (c *client) failure(f *Failure) error {
	failure := &hook.Error{Hook: c.name, Err: fmt.Errorf("the program reports an error: %.100q", f.Message)}
	switch f.Kind {
	case "", "failed":
		failure.Kind = hook.Failed
	case "throttled":
		failure.Kind = hook.Throttled
	case "rejected":
		failure.Kind = hook.Rejected
	default:
		return fmt.Errorf("error.kind: got %.40q, expected failed, throttled or rejected", f.Kind)
	}
	if hook.IsWord(f.Reason) {
		failure.Reason = f.Reason
	}
	if f.RetryAfterSeconds > 0 {
		wait := min(f.RetryAfterSeconds, hook.MaxRetryAfter.Seconds())
		failure.RetryAfter = time.Duration(wait * float64(time.Second))
	}
	return failure
}
