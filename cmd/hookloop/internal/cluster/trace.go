package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/inspect"
	"github.com/hookloop/hookloop/engine/change"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/jaeger"
	"github.com/hookloop/hookloop/internal/lastsync"
	"k8s.io/apimachinery/pkg/types"
)

// TraceOptions configures a [Tracer].
type TraceOptions struct {
	// Engine says which engine to ask for the last syncs.
	Engine Engine
	// Limit is the maximum number of objects to read.
	Limit int
	// UI is the address of a Jaeger UI to link to, or empty.
	UI string
	// Jaeger is the address of Jaeger's query service, which returns the spans of the latest change.
	// If it is empty, no spans are read.
	Jaeger string
}

// Tracer reports on one object and what its controllers did for it. Make one with [NewTracer], then
// call Report once, or Watch to follow the object. Do not call its methods concurrently.
type Tracer struct {
	*reader
	TraceOptions
	engines *engines
	spans   *jaeger.Query // nil for none
	// cluster is the cluster's UID. If it cannot be read, noCluster says why.
	cluster   types.UID
	noCluster error
}

// NewTracer connects to the cluster and looks up the object's resource. It does not read the
// object.
func NewTracer(ctx context.Context, t Target, o TraceOptions) (*Tracer, error) {
	r, err := newReader(ctx, t, o.Limit)
	if err != nil {
		return nil, err
	}
	tracer := &Tracer{reader: r, TraceOptions: o}
	tracer.engines, err = newEngines(o.Engine, r.index.config)
	if err != nil {
		return nil, err
	}
	if o.Jaeger != "" {
		tracer.spans = jaeger.NewQuery(o.Jaeger)
	}
	tracer.cluster, tracer.noCluster = r.index.uid(ctx)
	return tracer, ctx.Err()
}

// ID returns the id of the trace of the object's latest change, that is, of its generation. The
// syncs of all controllers of the object belong to this trace. The trace exists only if one of them
// exports traces and has sampled it.
func (t *Tracer) ID(ctx context.Context) (string, error) {
	if t.noCluster != nil {
		return "", t.noCluster
	}
	o, err := t.root(ctx)
	if err != nil {
		return "", err
	}
	return t.change(o).TraceID, nil
}

// Link returns the address of a trace in the UI, or the id if there is no UI.
func (t *Tracer) Link(id string) string {
	if t.UI == "" {
		return id
	}
	return strings.TrimSuffix(t.UI, "/") + "/trace/" + id
}

// Report describes the object as it is now.
func (t *Tracer) Report(ctx context.Context) (*inspect.Report, error) {
	root, err := t.root(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.index.load(ctx); err != nil {
		return nil, err
	}
	return t.report(ctx, root)
}

// report describes the object with what the index knows.
func (t *Tracer) report(ctx context.Context, root *object.Object) (*inspect.Report, error) {
	g, err := t.graph(ctx, root)
	if err != nil {
		return nil, err
	}
	r := &inspect.Report{Graph: g, Change: t.change(root), LastSyncs: []lastsync.Sync{}}
	r.LastSyncs, err = t.lastSyncs(ctx, root.UID())
	if err != nil {
		r.SyncsUnknown = err.Error()
	}
	if t.spans == nil || r.Change.TraceID == "" {
		return r, ctx.Err()
	}
	r.Trace, err = t.spans.Trace(ctx, r.Change.TraceID)
	switch {
	case errors.Is(err, jaeger.ErrNotFound):
		r.SpansUnknown = "Jaeger has none: not exported yet, not sampled, or another Jaeger than the engine's (" +
			t.Jaeger + ")"
	case err != nil:
		r.SpansUnknown = fmt.Sprintf("Jaeger does not answer: %v; expected the address of its query service in --jaeger",
			plain(err))
	}
	return r, ctx.Err()
}

// change returns the latest change of an object.
func (t *Tracer) change(o *object.Object) inspect.Change {
	c := inspect.Change{Generation: o.Generation()}
	if t.noCluster != nil {
		c.Unknown = t.noCluster.Error()
		return c
	}
	c.TraceID = change.Of(t.cluster, o.UID(), o.Generation()).Trace.String()
	if t.UI != "" {
		c.URL = t.Link(c.TraceID)
	}
	return c
}

// lastSyncs asks the engines for the last syncs of an object. It returns an error if no engine
// answers.
func (t *Tracer) lastSyncs(ctx context.Context, uid types.UID) ([]lastsync.Sync, error) {
	responses, err := t.engines.get(ctx, lastsync.Path, url.Values{"uid": {string(uid)}}, "application/json")
	if err != nil {
		return []lastsync.Sync{}, err
	}
	all := []lastsync.Sync{}
	answered := false
	for _, r := range responses {
		if r.Err != nil {
			continue
		}
		var answer lastsync.Answer
		if invalid := json.Unmarshal(r.Body, &answer); invalid != nil {
			err = fmt.Errorf("the engine at %s answers no JSON: %w; expected an engine of this version", r.From, invalid)
			continue
		}
		answered = true
		all = append(all, answer.Syncs...)
	}
	if answered { // a Pod without an engine may have its label
		return all, nil
	}
	return all, err
}
