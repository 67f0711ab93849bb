// Package fallback combines two hooks into one. It asks the preferred hook, and asks the fallback
// while the preferred hook cannot be reached or does not serve the operation.
//
// Use a [Transport] to open hooks that name both transports; it opens each hook with the
// transport's own opener. Every question gets one hook's answer: the hooks are asked one after the
// other, within one timeout.
//
// All hooks of a controller change sides together, except that an operation which the preferred
// hook does not serve goes to the fallback alone. Since the two hooks may answer differently, all
// parents are synced after a change, and changes are kept rare (see state).
//
// A combined hook is safe for concurrent use.
package fallback

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/internal/endpoint"
	"k8s.io/apimachinery/pkg/types"
)

// Side describes one of the two transports.
type Side struct {
	// Name is the transport's name, and its key in the hook's field.
	Name string
	// Field is how messages call the field in the hook's spec. If it is empty, Name is used.
	Field string
	Open  hook.Opener
}

// Transport opens hooks that name both transports. Hooks of one controller with the same preferred
// field change sides together. A Transport is safe for concurrent use.
type Transport struct {
	Preferred, Fallback Side
	// Metrics counts answers by transport. It may be nil.
	Metrics *Metrics

	mu    sync.Mutex // guards lines and their users
	lines map[string]*line
}

// Open opens both hooks. s.Field is an object with a field for each. An error names the field.
func (t *Transport) Open(s hook.Config) (*hook.Opened, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(s.Field, &fields); err != nil {
		return nil, err
	}
	p := &pair{
		op: s.Op, observer: s.Observer,
		preferred: side{name: t.Preferred.Name}, fallback: side{name: t.Fallback.Name},
		controller: string(s.Kind) + "/" + s.ControllerName, metrics: t.Metrics,
	}
	p.line = t.share(s, fields[t.Preferred.Name])
	if err := t.open(p, s, fields); err != nil {
		t.release(p.line)
		return nil, err
	}
	p.line.join(p)
	return &hook.Opened{
		Hook:    p,
		Address: p.address(),
		// An intercept answers for both hooks. Most often only the preferred one has a name.
		Named:   cmp.Or(p.preferred.Named, p.fallback.Named),
		Timeout: p.timeout,
		Forget: func(parent types.UID, part string) {
			p.preferred.forget(parent, part)
			p.fallback.forget(parent, part)
		},
		Close: func() error {
			p.line.leave(p)
			t.release(p.line)
			return errors.Join(p.preferred.close(), p.fallback.close())
		},
	}, nil
}

// open opens both hooks of a pair and divides the timeout between them.
func (t *Transport) open(p *pair, s hook.Config, fields map[string]json.RawMessage) error {
	preferred := s
	fallback := s
	preferred.Field = fields[t.Preferred.Name]
	fallback.Field = fields[t.Fallback.Name]
	preferred.Observer = p
	fallback.Observer = nil
	var err error
	p.preferred.Opened, err = t.Preferred.open(preferred)
	if err != nil {
		return err
	}
	p.fallback.Opened, err = t.Fallback.open(fallback)
	if err != nil {
		return errors.Join(err, p.preferred.close())
	}
	p.divide(p.preferred.Timeout, p.fallback.Timeout)
	return nil
}

// open opens the hook for one transport.
func (s Side) open(settings hook.Config) (*hook.Opened, error) {
	if settings.Field == nil {
		return nil, fmt.Errorf("%s: is missing; expected both transports", cmp.Or(s.Field, s.Name))
	}
	opened, err := s.Open(settings)
	if err == nil && opened != nil && opened.Hook != nil {
		return opened, nil
	}
	if err == nil {
		err = errors.New("the transport opened no hook, expected one or an error")
	}
	err = fmt.Errorf("%s: %w", cmp.Or(s.Field, s.Name), err)
	if opened != nil {
		err = errors.Join(err, side{Opened: opened}.close())
	}
	return nil, err
}

// side is an opened hook and its transport.
type side struct {
	name string
	*hook.Opened
}

func (s side) forget(parent types.UID, part string) {
	if s.Forget != nil {
		s.Forget(parent, part)
	}
}

func (s side) close() error {
	if s.Close == nil {
		return nil
	}
	return s.Close()
}

// pair is a combined hook.
type pair struct {
	op                  hook.Op
	controller          string
	preferred, fallback side
	line                *line
	observer            hook.Observer // may be nil
	metrics             *Metrics

	// timeout limits a question, and share limits how much of it the preferred hook may use.
	// silenceTimeout is how long the preferred hook may stay silent before it counts as
	// unreachable.
	timeout, share, silenceTimeout time.Duration

	// The fields below are guarded by the lock of line.

	operation operation
	// answered names the transport that answered last.
	answered string
	// reported is what the observer was told last. It is guarded by the lock reporting of line.
	reported *hook.Answering
}

// divide divides the longer timeout: the fallback gets its own timeout, but at most half, and the
// preferred hook gets the rest.
func (p *pair) divide(preferred, fallback time.Duration) {
	preferred = cmp.Or(preferred, endpoint.DefaultTimeout)
	fallback = cmp.Or(fallback, endpoint.DefaultTimeout)
	p.timeout = max(preferred, fallback)
	p.share = p.timeout - min(fallback, p.timeout/2)
	p.silenceTimeout = min(silenceTimeout, min(p.share, preferred)/2)
}

func (p *pair) address() string { return p.preferred.Address + " or " + p.fallback.Address }

// Serves notes whether the preferred hook serves the operation. The pair always serves it, because
// the fallback does.
func (p *pair) Serves(ops []hook.Op) {
	served := slices.Contains(ops, p.op)
	p.line.listed(p, served)
	if p.observer == nil {
		return
	}
	if !served {
		ops = append(slices.Clone(ops), p.op)
	}
	p.observer.Serves(ops)
}

// Intercepted passes the report on to the observer.
func (p *pair) Intercepted(by []string) {
	if p.observer != nil {
		p.observer.Intercepted(by)
	}
}

// Answering ignores what the preferred hook reports about its own transport.
func (p *pair) Answering(hook.Answering) {}

// share returns the line that hooks of a controller with this preferred hook use together. It
// creates the line if necessary.
func (t *Transport) share(s hook.Config, field json.RawMessage) *line {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := strings.Join([]string{s.ControllerKind, s.ControllerName, string(field), string(s.EndpointConfigs)}, "\x00")
	if l := t.lines[key]; l != nil {
		l.users++
		return l
	}
	l := newLine(key, t.Preferred.Name, t.Fallback.Name, s.Trigger)
	if t.lines == nil {
		t.lines = map[string]*line{}
	}
	t.lines[key] = l
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	go l.run(ctx)
	return l
}

// release ends a line when nobody uses it any longer.
func (t *Transport) release(l *line) {
	t.mu.Lock()
	l.users--
	last := l.users == 0
	if last {
		delete(t.lines, l.key)
	}
	t.mu.Unlock()
	if last {
		l.stop()
		<-l.stopped
	}
}
