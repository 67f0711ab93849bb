package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hookloop/hookloop/test/bench/meter"
	"github.com/hookloop/hookloop/test/bench/wire"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/serve"
)

// cost is the difference between two readings.
type cost struct {
	Wall      time.Duration `json:"wallNs"`
	EngineCPU time.Duration `json:"engineCPUNs"`
	HookCPU   time.Duration `json:"hookCPUNs"`
	// Collections is the number of the engine's garbage collections.
	Collections int `json:"collections"`
	// EngineKernel is the kernel's part of EngineCPU, and EngineWaits is the number of times that a
	// thread of the engine has waited (meter.Threads).
	EngineKernel time.Duration `json:"engineKernelNs"`
	EngineWaits  int           `json:"engineWaits"`
	// Sent and Received are bytes from the engine to the hook and back.
	Sent     int64 `json:"sentBytes"`
	Received int64 `json:"receivedBytes"`
	// Syncs are by result, Calls of the hook by code, and all calls of hooks, as Changed, by the input
	// that had changed, Requests to the API server by method, and Writes by verb and
	// resource. The engine counts the requests; watches count when they begin. The API server's audit
	// log counts the writes.
	Syncs    map[string]int `json:"syncs"`
	Calls    map[string]int `json:"hookCalls"`
	Changed  map[string]int `json:"hookCallsByInput"`
	Requests map[string]int `json:"apiRequests"`
	Writes   map[string]int `json:"apiWrites"`
}

// reading is the state of all counters.
type reading struct {
	at           time.Time
	engine, hook time.Duration
	threads      meter.Threads // of the engine
	wire         wire.Count
	samples      meter.Samples
	audit        cluster.Mark
}

// begin reads all counters before a measurement.
func (s *stage) begin(ctx context.Context) (*reading, error) {
	samples, err := s.scrape(ctx) // first, because it costs the engine some work
	if err != nil {
		return nil, err
	}
	audit, err := s.cluster.Mark()
	if err != nil {
		return nil, err
	}
	r := &reading{samples: samples, audit: audit}
	return r, s.processes(r)
}

// end returns the cost since a reading. The wall time ends at a moment that the caller passes.
func (s *stage) end(ctx context.Context, since *reading, until time.Time) (cost, error) {
	now := &reading{}
	if err := s.processes(now); err != nil {
		return cost{}, err
	}
	var err error
	now.samples, err = s.scrape(ctx)
	if err != nil {
		return cost{}, err
	}
	writes, err := s.writes(since.audit)
	if err != nil {
		return cost{}, err
	}
	passed := now.wire.Sub(since.wire)
	by := func(name, label string) map[string]int { return difference(since.samples, now.samples, name, label) }
	grown := func(name string) float64 { return now.samples.Sum(name) - since.samples.Sum(name) }
	return cost{
		Collections:  int(grown("go_gc_duration_seconds_count")),
		Wall:         until.Sub(since.at),
		EngineCPU:    now.engine - since.engine,
		HookCPU:      now.hook - since.hook,
		EngineKernel: now.threads.Kernel - since.threads.Kernel,
		EngineWaits:  now.threads.Waits - since.threads.Waits,
		Sent:         passed.Sent,
		Received:     passed.Received,
		Syncs:        by("hookloop_sync_duration_seconds_count", "result"),
		Calls:        by(s.calls(), "code"),
		Changed:      by("hookloop_hook_calls_total", "input"),
		Requests:     by("rest_client_requests_total", "method"),
		Writes:       writes,
	}, nil
}

// inTwo returns the cost of a build until a moment, and the cost from there until await returns. A
// write belongs to the part in which the API server received it: the audit log has it a moment
// after a watch does.
func (s *stage) inTwo(
	ctx context.Context, since *reading, until time.Time, await func(context.Context) error,
) (build, settle cost, err error) {
	build, err = s.end(ctx, since, until)
	if err != nil {
		return build, settle, err
	}
	built, err := s.begin(ctx)
	if err != nil {
		return build, settle, err
	}
	if err := await(ctx); err != nil {
		return build, settle, err
	}
	settle, err = s.end(ctx, built, time.Now())
	if err != nil {
		return build, settle, err
	}
	build.Writes, err = s.writes(since.audit)
	for what, n := range settle.Writes {
		build.Writes[what] -= n
		if build.Writes[what] == 0 {
			delete(build.Writes, what)
		}
	}
	return build, settle, err
}

// calls is the metric of the hook's calls.
func (s *stage) calls() string {
	if s.mapping {
		return "metacontroller_map_requests_total"
	}
	return "metacontroller_sync_requests_total"
}

// processes reads the counters that cost the processes nothing.
func (s *stage) processes(r *reading) (err error) {
	r.at, r.wire = time.Now(), s.proxy.Count()
	r.threads, err = meter.ReadThreads(s.measured().PID())
	if err != nil {
		return err
	}
	r.engine = r.threads.CPU
	r.hook, err = meter.CPU(s.hooks.PID())
	return err
}

func (s *stage) scrape(ctx context.Context) (meter.Samples, error) {
	if s.alone != nil {
		return nil, nil
	}
	return scrape(ctx, s.engine)
}

// scrape reads an engine's metrics.
func scrape(ctx context.Context, e *serve.Engine) (meter.Samples, error) {
	page, err := serve.Fetch(ctx, "http://"+e.Metrics+"/metrics")
	if err != nil {
		return nil, err
	}
	return meter.Parse(page)
}

// difference returns the growth of the series of a name, by a label. It leaves out series without
// growth.
func difference(before, after meter.Samples, name, label string) map[string]int {
	old := before.By(name, label)
	grown := map[string]int{}
	for value, n := range after.By(name, label) {
		if d := int(n - old[value]); d != 0 {
			grown[value] = d
		}
	}
	return grown
}

// writes returns the numbers of the engine's writes since a mark, by verb and resource.
func (s *stage) writes(since cluster.Mark) (map[string]int, error) {
	all, err := s.cluster.Writes(since)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, w := range all {
		if !strings.HasPrefix(w.UserAgent, "hookloop/") {
			continue
		}
		what := w.Verb + " " + w.Resource
		if w.Subresource != "" {
			what += "/" + w.Subresource
		}
		if w.Code >= 300 {
			what += fmt.Sprintf(" (%d)", w.Code)
		}
		counts[what]++
	}
	return counts, nil
}

// rest is the time without bytes between engine and hook and with little work of the engine that
// counts as rest.
const (
	restFor = 100 * time.Millisecond
	restCPU = 5 * time.Millisecond
)

// rests waits until the engine rests, so that each measurement contains all of its effects. It
// reads counters of the kernel and the proxy, and costs the engine nothing.
func (s *stage) rests(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, waitTimeout, errors.New("the engine does not rest"))
	defer cancel()
	tick := time.NewTicker(restFor)
	defer tick.Stop()
	var last reading
	if err := s.processes(&last); err != nil {
		return err
	}
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		var now reading
		if err := s.processes(&now); err != nil {
			return err
		}
		if now.wire == last.wire && now.engine-last.engine < restCPU {
			return nil
		}
		last = now
	}
}

// asked waits until bytes have been sent to the hook since a count.
func (s *stage) asked(ctx context.Context, since wire.Count) error {
	return poll(ctx, "the hook is asked", func(context.Context) error {
		if s.proxy.Count().Sent == since.Sent {
			return errors.New("nothing has been sent to it")
		}
		return nil
	})
}

// memory is the memory of the measured process in bytes.
type memory struct {
	RSS  int64 `json:"rssBytes"`
	Peak int64 `json:"peakBytes"`
	// Rested is RSS after restedFor without an event; 0 if the workload does not wait for it.
	Rested int64 `json:"restedRSSBytes,omitempty"`
	// File is the part of RSS that are pages of the program.
	File int64 `json:"fileBytes"`
	// Live is the heap after a garbage collection, and Collection the CPU time of one; both are 0 for
	// the bare client.
	Live       int64         `json:"liveHeapBytes"`
	Collection time.Duration `json:"collectionNs"`
}

// memory reads the memory of the measured process, again after a time of rest if that is not 0, and
// then the size of its live heap.
func (s *stage) memory(ctx context.Context, rest time.Duration) (m memory, err error) {
	u, err := meter.Process(s.measured().PID())
	if err != nil {
		return m, err
	}
	m.RSS = u.RSS
	m.Peak = u.Peak
	m.File = u.File
	if s.alone != nil {
		return m, nil
	}
	if rest > 0 {
		if err := pause(ctx, rest); err != nil {
			return m, err
		}
		u, err = meter.Process(s.measured().PID())
		if err != nil {
			return m, err
		}
		m.Rested = u.RSS
	}
	m.Collection, err = s.collection(ctx)
	if err != nil {
		return m, err
	}
	samples, err := s.scrape(ctx)
	if err != nil {
		return m, err
	}
	m.Live = int64(samples.Sum("go_memstats_heap_alloc_bytes"))
	return m, nil
}

// collection collects the engine's garbage, and returns the CPU time of that: the time of a heap
// profile with a collection before it, less that of one without.
func (s *stage) collection(ctx context.Context) (time.Duration, error) {
	var spent [2]time.Duration
	for i, gc := range []string{"1", "0"} {
		before, err := meter.CPU(s.measured().PID())
		if err != nil {
			return 0, err
		}
		if err := s.heap(ctx, gc); err != nil {
			return 0, err
		}
		after, err := meter.CPU(s.measured().PID())
		if err != nil {
			return 0, err
		}
		spent[i] = after - before
	}
	return max(0, spent[0]-spent[1]), nil
}

// pause returns after a time without an event.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
