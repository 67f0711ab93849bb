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

// TraceOptions configures a Tracer.
type TraceOptions struct {
	// Engine is asked for the last syncs.
	Engine Engine
	// Limit is the largest number of objects.
	Limit int
	// UI is the address of a Jaeger UI, for the link to the trace; empty for none.
	UI string
	// Jaeger is the address of Jaeger's query service, which is asked for the spans of the latest
	// change; empty for none.
	Jaeger string
}

// Tracer reports on one object. Its methods must not be called concurrently.
type Tracer struct {
	*reader
	TraceOptions
	engines *engines
	spans   *jaeger.Query // nil for none
	// cluster is the cluster's UID, or noCluster the reason for which it cannot be read.
	cluster   types.UID
	noCluster error
}

// NewTracer finds the resource of an object. It does not read the object.
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
// syncs of all controllers of this object belong to the trace. It exists if such a controller
// exports traces and has sampled this one.
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

// Link returns the address of a trace in the UI; the id itself without a UI.
func (t *Tracer) Link(id string) string {
	if t.UI == "" {
		return id
	}
	return strings.TrimSuffix(t.UI, "/") + "/trace/" + id
}

// Report reports on the object as it is now.
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

// report reports on the object with what the index has.
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

// lastSyncs asks the engines for the last syncs of an object. The error is that of all engines.
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
