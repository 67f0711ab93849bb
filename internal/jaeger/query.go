// Package jaeger reads traces from Jaeger's JSON API and draws them as text:
//
//	query := jaeger.NewQuery("http://127.0.0.1:16686")
//	trace, err := query.Trace(ctx, id)
//	fmt.Print(jaeger.Tree(trace))
//
// A Query is safe for concurrent use. A Trace is a value.
package jaeger

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrNotFound is returned if Jaeger has no span of the trace.
var ErrNotFound = errors.New("trace not found")

// Query reads from a Jaeger's JSON API.
type Query struct {
	base   string
	client *http.Client
}

const (
	tracesPath = "/api/traces/"
	// queryTimeout limits one request.
	queryTimeout = 10 * time.Second
)

// maxBody limits a response.
const maxBody = 64 << 20

// NewQuery makes a Query for Jaeger's query service at this URL.
func NewQuery(base string) *Query {
	client := &http.Client{Transport: &http.Transport{}, Timeout: queryTimeout}
	return &Query{base: strings.TrimSuffix(base, "/"), client: client}
}

// URL returns the URL of the query service.
func (q *Query) URL() string { return q.base }

// TraceURL returns the URL of a trace as JSON.
func (q *Query) TraceURL(id string) string { return q.base + tracesPath + url.PathEscape(id) }

// Close closes the idle connections.
func (q *Query) Close() { q.client.CloseIdleConnections() }

// Services returns the names of all services that have sent a span, sorted.
func (q *Query) Services(ctx context.Context) ([]string, error) {
	var names []string
	if err := q.get(ctx, q.base+"/api/services", nil, &names); err != nil {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

// Trace returns the spans that Jaeger has of a trace. The id has 32 hexadecimal digits. It returns
// [ErrNotFound] if there are none.
func (q *Query) Trace(ctx context.Context, id string) (*Trace, error) {
	var found []apiTrace
	if err := q.get(ctx, q.TraceURL(id), nil, &found); err != nil {
		return nil, fmt.Errorf("trace %s: %w", id, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("trace %s: %w", id, ErrNotFound)
	}
	return found[0].trace(), nil
}

// Search says which traces to find. All fields must match the same span.
type Search struct {
	// Service is required.
	Service string
	// Operation is the span's name; empty for any.
	Operation string
	// Tags must be attributes of the span or of its process.
	Tags map[string]string
	// Limit is how many traces to return, taking the newest; 0 means 100.
	Limit int
}

// Find returns the traces that match, the oldest first.
func (q *Query) Find(ctx context.Context, s Search) ([]*Trace, error) {
	parameters := url.Values{"service": {s.Service}, "limit": {strconv.Itoa(cmp.Or(s.Limit, 100))}, "start": {"0"}}
	if s.Operation != "" {
		parameters.Set("operation", s.Operation)
	}
	if len(s.Tags) > 0 {
		tags, err := json.Marshal(s.Tags)
		if err != nil {
			return nil, err
		}
		parameters.Set("tags", string(tags))
	}
	var found []apiTrace
	if err := q.get(ctx, q.base+"/api/traces", parameters, &found); err != nil {
		return nil, fmt.Errorf("find traces of %s: %w", s.Service, err)
	}
	traces := make([]*Trace, 0, len(found))
	for _, f := range found {
		traces = append(traces, f.trace())
	}
	slices.SortStableFunc(traces, func(a, b *Trace) int { return a.Start().Compare(b.Start()) })
	return traces, nil
}

// Await polls until complete accepts the trace. This is necessary because spans arrive in batches
// and from several processes. If ctx ends first, it returns the trace so far and an error.
func (q *Query) Await(ctx context.Context, id string, complete func(*Trace) bool) (*Trace, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last *Trace
	for {
		found, err := q.Trace(ctx, id)
		switch {
		case err == nil && complete(found):
			return found, nil
		case err == nil:
			last = found
		case ctx.Err() == nil && !errors.Is(err, ErrNotFound):
			return last, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return last, fmt.Errorf("trace %s is not complete: %w", id, ctx.Err())
		}
	}
}

// get reads the field "data" of a response. Numbers stay as they are written.
func (q *Query) get(ctx context.Context, address string, parameters url.Values, data any) error {
	if len(parameters) > 0 {
		address += "?" + parameters.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := q.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it has been read to its end
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return fmt.Errorf("GET %s: %w", address, err)
	}
	if len(body) > maxBody {
		return fmt.Errorf("GET %s: the response has more than %d bytes", address, maxBody)
	}
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return ErrNotFound
	default:
		return fmt.Errorf("GET %s: %s: %.500s", address, response.Status, body)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&struct{ Data any }{data}); err != nil {
		return fmt.Errorf("GET %s: %w", address, err)
	}
	return nil
}

// These types follow Jaeger's JSON API (its package model/json), with the fields that we read.
type (
	apiTrace struct {
		TraceID   string
		Spans     []apiSpan
		Processes map[string]struct{ ServiceName string }
	}
	apiSpan struct {
		SpanID, OperationName, ProcessID string
		References                       []struct{ RefType, TraceID, SpanID string }
		StartTime, Duration              int64 // microseconds
		Tags                             []struct {
			Key   string
			Value any
		}
	}
)

func (a apiTrace) trace() *Trace {
	t := &Trace{ID: a.TraceID}
	for _, s := range a.Spans {
		t.Spans = append(t.Spans, s.span(a.TraceID, a.Processes[s.ProcessID].ServiceName))
	}
	slices.SortStableFunc(t.Spans, func(a, b Span) int {
		return cmp.Or(a.Start.Compare(b.Start), b.End().Compare(a.End()), cmp.Compare(a.ID, b.ID))
	})
	return t
}

func (a apiSpan) span(traceID, service string) Span {
	s := Span{
		ID: a.SpanID, Operation: a.OperationName, Service: service, Tags: map[string]string{},
		Start: time.UnixMicro(a.StartTime).UTC(), Duration: time.Duration(a.Duration) * time.Microsecond,
	}
	for _, r := range a.References {
		if r.RefType == "CHILD_OF" && r.TraceID == traceID && s.Parent == "" {
			s.Parent = r.SpanID
		} else {
			s.Links = append(s.Links, Link{TraceID: r.TraceID, SpanID: r.SpanID})
		}
	}
	for _, tag := range a.Tags {
		s.Tags[tag.Key] = fmt.Sprint(tag.Value)
	}
	return s
}
