package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/examples/custom-watch/api"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxMessage is the largest number of bytes of a message.
const maxMessage = 200

// heartbeat is a sign of life.
type heartbeat struct {
	at      time.Time
	message string
}

// probes is the controller's state: the heartbeats that no status shows yet.
type probes struct {
	webhook *controller.Webhook
	period  time.Duration
	now     func() time.Time

	mu sync.Mutex // guards heartbeats
	// heartbeats has at most one item for each Probe.
	heartbeats map[controller.Key]heartbeat
}

// newProbes returns the controller. Senders of heartbeats must have the token; overdue Probes are
// looked for once in each period.
func newProbes(token string, period time.Duration) *probes {
	p := &probes{period: period, now: time.Now, heartbeats: map[controller.Key]heartbeat{}}
	p.webhook = controller.NewWebhook(controller.WebhookOptions{
		Authorize: controller.BearerToken(token), Keys: p.receive, MaxBytes: 4 << 10,
	})
	return p
}

// controller returns the declaration: two sources beside the watch of Probes.
func (p *probes) controller() controller.Declared {
	return controller.New[*api.Probe]("probes").
		Source(p.webhook).
		Source(controller.Ticker(p.period, p.overdue)).
		Reconciler(controller.ReconcileFunc[*api.Probe](p.reconcile))
}

// receive keeps the heartbeat of a request for the reconcile of its Probe. The Probe must exist, so
// that senders cannot fill the memory.
func (p *probes) receive(_ context.Context, r controller.Reader, body []byte) ([]controller.Key, error) {
	var beat struct{ Namespace, Name, Message string }
	if err := json.Unmarshal(body, &beat); err != nil {
		return nil, fmt.Errorf("the body is no heartbeat: %w", err)
	}
	if len(beat.Message) > maxMessage {
		return nil, fmt.Errorf("message has %d bytes, expected at most %d", len(beat.Message), maxMessage)
	}
	key := controller.Key{Namespace: beat.Namespace, Name: beat.Name}
	if _, err := controller.Get[*api.Probe](r, key); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heartbeats[key] = heartbeat{p.now(), beat.Message}
	return []controller.Key{key}, nil
}

// overdue returns the Probes that are overdue, while their status still shows that they are alive.
func (p *probes) overdue(_ context.Context, r controller.Reader) ([]controller.Key, error) {
	all, err := controller.List[*api.Probe](r)
	if err != nil {
		return nil, err
	}
	var keys []controller.Key
	for _, probe := range all {
		if shown := isAlive(probe); shown && !p.alive(probe) {
			keys = append(keys, controller.KeyOf(probe))
		}
	}
	return keys, nil
}

// reconcile writes the newest heartbeat into the status.
func (p *probes) reconcile(ctx context.Context, req *controller.Request[*api.Probe]) (controller.Result, error) {
	beat, fresh := p.newest(req.Key)
	if req.Object == nil {
		p.done(req.Key, beat)
		return controller.Result{}, nil
	}
	err := controller.SetStatus(ctx, req.Runtime, req.Object, func(o *api.Probe) {
		if fresh {
			at := metav1.NewMicroTime(beat.at)
			o.Status.Last = &at
			o.Status.Message = beat.message
		}
		alive := controller.False(api.Alive, "Overdue", "no heartbeat within "+o.Spec.Period.Duration.String())
		if p.alive(o) {
			alive = controller.True(api.Alive, "Heartbeat", "the last heartbeat is in time")
		}
		controller.SetConditions(o, &o.Status.Conditions, alive)
	})
	if err == nil {
		p.done(req.Key, beat) // after an error the next reconcile has it again
	}
	return controller.Result{}, err
}

// alive reports whether the last heartbeat of a Probe is in time.
func (p *probes) alive(o *api.Probe) bool {
	return o.Status.Last != nil && p.now().Sub(o.Status.Last.Time) <= o.Spec.Period.Duration
}

// isAlive reports what the status of a Probe shows.
func isAlive(o *api.Probe) bool {
	for _, c := range o.Status.Conditions {
		if c.Type == api.Alive {
			return c.Status == metav1.ConditionTrue
		}
	}
	return false
}

// newest returns the newest heartbeat of a key, if no status shows it.
func (p *probes) newest(key controller.Key) (heartbeat, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	beat, has := p.heartbeats[key]
	return beat, has
}

// done forgets a heartbeat, unless a newer one has come.
func (p *probes) done(key controller.Key, beat heartbeat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.heartbeats[key] == beat {
		delete(p.heartbeats, key)
	}
}
