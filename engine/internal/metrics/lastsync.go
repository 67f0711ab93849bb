package metrics

import (
	"time"

	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/internal/lastsync"
)

// Recorder counts each sync, and keeps the last one of each parent for "hookloop explain". Use
// [NewRecorder] to make one.
type Recorder struct {
	*Syncs
	last *lastsync.Store
	now  func() time.Time
}

// NewRecorder returns a Recorder that keeps the last syncs in last. The time of a sync comes from
// now.
func NewRecorder(syncs *Syncs, last *lastsync.Store, now func() time.Time) Recorder {
	return Recorder{Syncs: syncs, last: last, now: now}
}

var _ pipeline.Recorder = Recorder{}

// Synced implements pipeline.Recorder.
func (r Recorder) Synced(controller string, o pipeline.Outcome) {
	r.Syncs.Synced(controller, o)
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
