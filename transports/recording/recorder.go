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
	// DefaultPerParent is the default number of recordings of a parent.
	DefaultPerParent = 20
	// DefaultMaxBytes is the default size of all recordings.
	DefaultMaxBytes = 256 << 20
	// maxQueued bounds the exchanges that wait to be written, and maxQueuedBytes their size: the
	// budget may have no limit.
	maxQueued      = 256
	maxQueuedBytes = 64 << 20
)

// Config configures a Recorder.
type Config struct {
	// Dir is the folder of the recordings. It is created.
	Dir string
	// PerParent is the number of recordings that are kept for each parent, or part of it.
	PerParent int
	// MaxBytes bounds the size of all recordings.
	MaxBytes int64
	// Memory is the share of the process's budget; nil for no limit.
	Memory *budget.Share
	// Engine is the version of the engine.
	Engine string
	// Meter counts recordings.
	Meter Meter
}

// Meter counts recordings.
type Meter interface {
	// Recorded counts a question by its result: "written", "dropped" or "failed".
	Recorded(result string)
	// Kept is the number of bytes on disk.
	Kept(bytes int64)
}

// Recorder records the questions and answers of the hooks that it wraps. A nil *Recorder records
// nothing.
type Recorder struct {
	Config
	queue  chan exchange
	queued atomic.Int64
	folder *folder
}

// Open prepares the folder, and reads which recordings it has. Run writes.
func Open(s Config) (*Recorder, error) {
	f, err := openFolder(s)
	if err != nil {
		return nil, err
	}
	s.Meter.Kept(f.bytes)
	return &Recorder{Config: s, queue: make(chan exchange, maxQueued), folder: f}, nil
}

// Openers wraps each hook that the given openers open. A nil *Recorder returns the openers.
func (r *Recorder) Openers(openers hook.Openers) hook.Openers {
	if r == nil {
		return openers
	}
	wrapped := make(hook.Openers, len(openers))
	for transport, open := range openers {
		wrapped[transport] = func(s hook.Config) (*hook.Opened, error) {
			opened, err := open(s)
			if err != nil {
				return nil, err
			}
			recorded := *opened
			recorded.Hook = r.wrap(opened.Hook, Hook{Transport: transport, Address: opened.Address, Version: s.Version})
			return &recorded, nil
		}
	}
	return wrapped
}

// wrap records the questions to a hook. A question that its caller cancels is not recorded.
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

// add queues an exchange, or drops it if there is no room. It never waits.
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

// size estimates the memory of an exchange, with that for its encoding.
func (e *exchange) size() int64 {
	size := e.question.Size() + int64(e.question.Controller.Size())
	if e.answer != nil {
		size += answerSize(e.answer)
	}
	return 4*size + 1<<10
}

// answerSize is the bytes of the texts of an answer.
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

// Run writes until ctx ends, and then the rest of the queue. A nil *Recorder returns.
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

// write writes one recording.
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
		if panicked := recover(); panicked != nil { // a recording must not end the engine
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
