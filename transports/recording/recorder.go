package recording

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/budget"
	"k8s.io/klog/v2"
)

const (
	// DefaultPerParent is how many recordings of a parent are kept by default.
	DefaultPerParent = 20
	// DefaultMaxBytes limits the size of all recordings by default.
	DefaultMaxBytes = 256 << 20
	// maxQueued limits how many exchanges may wait to be written, and maxQueuedBytes their size,
	// since the budget may be unlimited.
	maxQueued      = 256
	maxQueuedBytes = 64 << 20
)

// Config configures a [Recorder].
type Config struct {
	// Dir is the folder for recordings. It is created if necessary.
	Dir string
	// PerParent is how many recordings to keep for each parent, or for each part of it.
	PerParent int
	// MaxBytes limits the size of all recordings.
	MaxBytes int64
	// Memory is a share of the process's budget. If it is nil, memory is not limited.
	Memory *budget.Share
	// Engine is the engine's version.
	Engine string
	// Meter receives what the recorder counts.
	Meter Meter
}

// Meter receives what a [Recorder] counts, for example to export metrics.
type Meter interface {
	// Recorded is called for each question with its result: "written", "dropped" or "failed".
	Recorded(result string)
	// Kept is called with the number of bytes on disk.
	Kept(bytes int64)
}

// Recorder records questions and answers of the hooks that [Recorder.Openers] wraps. A nil
// *Recorder records nothing.
type Recorder struct {
	Config
	queue  chan exchange
	queued atomic.Int64
	folder *folder
}

// Open creates the folder and looks for recordings in it. Call [Recorder.Run] to write new ones.
func Open(s Config) (*Recorder, error) {
	f, err := openFolder(s)
	if err != nil {
		return nil, err
	}
	s.Meter.Kept(f.bytes)
	return &Recorder{Config: s, queue: make(chan exchange, maxQueued), folder: f}, nil
}

// Openers wraps every hook that these openers open. If r is nil, it returns the openers unchanged.
func (r *Recorder) Openers(openers hook.Openers) hook.Openers {
	if r == nil {
		return openers
	}
	wrapped := make(hook.Openers, len(openers))
	for transport, open := range openers {
		wrapped[transport] = func(s hook.Config) (*hook.Opened, error) {
			opened, err := open(s)
			if err != nil || opened == nil || opened.Hook == nil {
				return opened, err // what a transport must not return is reported by its caller
			}
			recorded := *opened
			recorded.Hook = r.wrap(opened.Hook, Hook{Transport: transport, Address: opened.Address, Version: s.Version})
			return &recorded, nil
		}
	}
	return wrapped
}

// wrap returns a hook that records questions. It does not record a question that the caller
// cancels.
func (r *Recorder) wrap(next hook.Hook, at Hook) hook.Hook {
	return hook.Func(func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
		begun := time.Now()
		answer, err := next.Ask(ctx, q)
		if err == nil || hook.ErrorKindOf(err) != "" {
			r.add(exchange{question: q, answer: answer, err: err, at: begun, took: time.Since(begun), hook: at})
		}
		return answer, err
	})
}

// add queues an exchange. If there is no room, it drops the exchange rather than wait.
func (r *Recorder) add(e exchange) {
	size := e.size()
	if r.queued.Add(size) > maxQueuedBytes || r.Memory.TryAcquire(size) != nil {
		r.queued.Add(-size)
		r.Meter.Recorded("dropped")
		return
	}
	select {
	case r.queue <- e:
	default:
		r.release(size)
		r.Meter.Recorded("dropped")
	}
}

func (r *Recorder) release(size int64) {
	r.queued.Add(-size)
	r.Memory.Release(size)
}

// size estimates how much memory an exchange takes, also while it is encoded.
func (e *exchange) size() int64 {
	size := e.question.Size() + int64(e.question.Controller.Size())
	if e.answer != nil {
		size += answerSize(e.answer)
	}
	return 4*size + 1<<10
}

// answerSize counts the bytes in an answer's texts.
func answerSize(a *hook.Answer) int64 {
	size := len(a.Status)
	for _, child := range a.Children {
		size += len(child)
	}
	for _, patch := range []map[string]*string{a.Labels, a.Annotations} {
		for key, text := range patch {
			size += len(key)
			if text != nil {
				size += len(*text)
			}
		}
	}
	for _, c := range a.Conditions {
		size += len(c.Type) + len(c.Reason) + len(c.Message)
	}
	for _, e := range a.Events {
		size += len(e.Reason) + len(e.Message)
	}
	for _, r := range a.Results {
		size += len(r.Reason) + len(r.Message)
	}
	for _, list := range [][]hook.RelatedRule{a.Related, a.Requirements} {
		for _, rule := range list {
			size += len(rule.LabelSelector) + len(rule.NamespaceSelector) + len(strings.Join(rule.Names, ",")) + 1<<8
		}
	}
	return int64(size) + int64(len(a.States))<<8
}

// Run writes exchanges until ctx ends, and then writes what is left in the queue. If r is nil, it
// returns at once.
func (r *Recorder) Run(ctx context.Context) {
	if r == nil {
		return
	}
	for {
		select {
		case e := <-r.queue:
			r.write(ctx, e)
		case <-ctx.Done():
			for {
				select {
				case e := <-r.queue:
					r.write(ctx, e)
				default:
					return
				}
			}
		}
	}
}

// write writes a recording.
func (r *Recorder) write(ctx context.Context, e exchange) {
	defer r.release(e.size())
	err := r.save(e)
	if err != nil {
		klog.FromContext(ctx).Error(err, "recording is lost", "parent", e.question.Key.String())
		r.Meter.Recorded("failed")
		return
	}
	r.Meter.Recorded("written")
	r.Meter.Kept(r.folder.bytes)
}

func (r *Recorder) save(e exchange) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil { // a fault in a recording must not end the engine
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	recorded, err := encode(e)
	if err != nil {
		return err
	}
	recorded.Engine = r.Engine
	return r.folder.save(recorded, e.question)
}
