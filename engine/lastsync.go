package engine

import (
	"time"

	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/internal/lastsync"
)

// recorder counts each sync and keeps the last one of each parent.
type recorder struct {
	*syncMetrics
	last *lastsync.Store
	now  func() time.Time
}

var _ pipeline.Recorder = recorder{}

// Synced implements pipeline.Recorder.
func (r recorder) Synced(controller string, o pipeline.Outcome) {
	r.syncMetrics.Synced(controller, o)
	w := o.Work
	switch {
	case w.Parent == "": // an echo, or a parent that is not known
		return
	case o.Result == pipeline.Gone:
		if o.Key.Part == "" {
			r.last.Forget(w.Parent, controller)
		}
		return
	}
	record := lastsync.Sync{
		Controller: controller, OneInput: o.Key.Part != "", Generation: w.Generation, Result: o.Result, Failed: o.Err != nil,
		Time: r.now().UTC(), Duration: o.Duration, Waited: o.Waited, Attempt: w.Attempt,
		HookCalls: w.HookCalls, HookTime: w.HookTime, Changed: string(w.Changed),
		Children: w.Children, Unchanged: w.Unchanged, Pending: w.Pending, Held: w.Held, Waiting: w.Waiting,
		Writes: w.Writes,
	}
	if w.Trace.IsValid() {
		record.TraceID = w.Trace.String()
	}
	r.last.Add(w.Parent, record)
}
