package top

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hookloop/hookloop/internal/printable"
)

// Table shows what the engines did between two scrapes. Use [Between] to make one.
type Table struct {
	// Engines is the number of processes that run controllers. Version is that of the last one or, if
	// there are none, of the first one that waits to lead.
	Engines int    `json:"engines"`
	Version string `json:"version"`
	// Standby describes the processes that wait to lead. The rest of the table does not count them.
	Standby Standby `json:"standby"`
	// Seconds is how much time is between the scrapes.
	Seconds         float64 `json:"seconds"`
	WritesPerSecond float64 `json:"writesPerSecond"`
	CacheBytes      float64 `json:"cacheBytes"`
	CacheObjects    float64 `json:"cacheObjects"`
	// Cache lists how much each resource takes, the largest first. All controllers share the cache.
	Cache []Cached `json:"cache"`
	// Controllers are ordered by name.
	Controllers []Row `json:"controllers"`
	// LeftOut lists the Pods that have the engine's label but did not return its metrics.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
}

// Standby describes the replicas that wait to lead. They run no controllers.
type Standby struct {
	Replicas     int     `json:"replicas"`
	CacheBytes   float64 `json:"cacheBytes"`
	CacheObjects float64 `json:"cacheObjects"`
	// FailingSeconds is how long the list or watch of a resource has been failing, the longest time; 0
	// if all work.
	FailingSeconds float64 `json:"failingSeconds,omitempty"`
}

// LeftOut names a Pod that is not in the table, and why.
type LeftOut struct {
	// Pod is namespace/name.
	Pod     string `json:"pod"`
	Problem string `json:"problem"`
}

// Cached describes the cache of one resource.
type Cached struct {
	Resource string  `json:"resource"`
	Objects  float64 `json:"objects"`
	Bytes    float64 `json:"bytes"`
	// FailingSeconds is how long the list or watch has been failing; 0 if it works.
	FailingSeconds float64 `json:"failingSeconds,omitempty"`
}

// Row describes one controller.
type Row struct {
	Controller     string  `json:"controller"`
	SyncsPerSecond float64 `json:"syncsPerSecond"`
	Queue          float64 `json:"queue"`
	// HookP50 and HookP99 are quantiles of how long its hooks took, in seconds. They cover the calls
	// between the scrapes or, if HookSinceStart is true because there were none, all calls since the
	// engine's start. They are nil if there were no calls at all.
	HookP50        *float64 `json:"hookP50Seconds,omitempty"`
	HookP99        *float64 `json:"hookP99Seconds,omitempty"`
	HookSinceStart bool     `json:"hookSinceStart,omitempty"`
	// ErrorsPerSecond counts between the scrapes, and Errors since the engine's start. Reason is the
	// most frequent reason, between the scrapes if there was an error.
	ErrorsPerSecond float64 `json:"errorsPerSecond"`
	Errors          float64 `json:"errors"`
	Reason          string  `json:"reason,omitempty"`
	// OpenCircuits is how many parents have an open circuit.
	OpenCircuits float64 `json:"openCircuits"`
}

// Between makes the table for the time between two scrapes.
func Between(before, now *Scrape) *Table {
	seconds := now.Time.Sub(before.Time).Seconds()
	t := &Table{
		Engines: now.engines, Standby: now.standby, Version: now.version, Seconds: seconds,
		WritesPerSecond: rate(now.writes, before.writes, seconds),
		Controllers:     []Row{}, Cache: []Cached{}, LeftOut: now.leftOut,
	}
	for _, name := range slices.Sorted(maps.Keys(now.cached)) {
		c := now.cached[name]
		t.CacheBytes += c.Bytes
		t.CacheObjects += c.Objects
		t.Cache = append(t.Cache, *c)
	}
	slices.SortStableFunc(t.Cache, func(a, b Cached) int { return cmp.Compare(b.Bytes, a.Bytes) })
	for _, name := range slices.Sorted(maps.Keys(now.controllers)) {
		earlier := before.controllers[name]
		if earlier == nil {
			earlier = &counters{}
		}
		t.Controllers = append(t.Controllers, row(name, earlier, now.controllers[name], seconds))
	}
	return t
}

// row returns the row of one controller.
func row(name string, before, now *counters, seconds float64) Row {
	r := Row{
		Controller: name, Queue: now.queue, OpenCircuits: now.circuits, Errors: now.errors,
		SyncsPerSecond:  rate(now.syncs, before.syncs, seconds),
		ErrorsPerSecond: rate(now.errors, before.errors, seconds), Reason: reason(before.reasons, now.reasons),
	}
	calls := now.hook.minus(before.hook)
	if calls.count() == 0 {
		calls = now.hook
		r.HookSinceStart = now.hook.count() > 0
	}
	if calls.count() > 0 {
		p50 := calls.quantile(.5)
		p99 := calls.quantile(.99)
		r.HookP50 = &p50
		r.HookP99 = &p99
	}
	return r
}

// rate returns how much a counter grew per second. A counter that is smaller than before has
// started again, with the engine.
func rate(now, before, seconds float64) float64 {
	if now < before {
		before = 0
	}
	if seconds <= 0 {
		return 0
	}
	return (now - before) / seconds
}

// reason returns the most frequent reason since before. If there was no error since, it looks at
// all of them.
func reason(before, now map[string]float64) string {
	best := ""
	most := 0.0
	all := 0.0
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if n := now[name] - before[name]; n > most {
			best = name
			most = n
		}
	}
	if best != "" {
		return best
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if now[name] > all {
			best = name
			all = now[name]
		}
	}
	return best
}

const (
	// maxName limits a name in the table, in characters.
	maxName = 80
	// maxProblem limits the reason why a Pod is left out.
	maxProblem = 300
	// maxCached limits how many resources the table shows. The JSON has all of them.
	maxCached = 10
)

// Text draws the table.
func (t *Table) Text() string {
	var b strings.Builder
	if t.Engines == 0 {
		fmt.Fprintf(&b, "no engine that answered leads, version %s\n", printable.Text(t.Version, maxName))
	} else {
		t.leading(&b)
	}
	t.waiting(&b)
	if len(t.LeftOut) > 0 {
		b.WriteString("\n")
	}
	for _, p := range t.LeftOut {
		fmt.Fprintf(&b, "! Pod %s is left out: %s\n", printable.Text(p.Pod, maxName), printable.Text(p.Problem, maxProblem))
	}
	return trimmed(b.String())
}

// leading draws the engines with controllers.
func (t *Table) leading(b *strings.Builder) {
	fmt.Fprintf(b, "%s, version %s, %.1f writes/s; cache %s in %.0f objects; over %s\n\n",
		printable.Count(t.Engines, "engine"), printable.Text(t.Version, maxName), t.WritesPerSecond,
		bytesText(t.CacheBytes), t.CacheObjects,
		time.Duration(t.Seconds*float64(time.Second)).Round(100*time.Millisecond))
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "CONTROLLER\tSYNCS/S\tQUEUE\tHOOK P50\tHOOK P99\tERRORS/S\tERRORS\tCIRCUITS\tREASON")
	starred := false
	for _, r := range t.Controllers {
		starred = starred || r.HookSinceStart
		_, _ = fmt.Fprintf(w, "%s\t%.1f\t%.0f\t%s\t%s\t%.1f\t%.0f\t%.0f\t%s\n", printable.Text(r.Controller, maxName),
			r.SyncsPerSecond, r.Queue, seconds(r.HookP50, r.HookSinceStart), seconds(r.HookP99, r.HookSinceStart),
			r.ErrorsPerSecond, r.Errors, r.OpenCircuits, printable.Text(r.Reason, maxName))
	}
	_ = w.Flush() // a strings.Builder takes everything
	if len(t.Controllers) == 0 {
		b.WriteString("no controller runs\n")
	}
	t.cache(b)
	if starred {
		b.WriteString("\n* since the start of the engine: no call in this time\n")
	}
}

// waiting draws the replicas that wait to lead.
func (t *Table) waiting(b *strings.Builder) {
	s := t.Standby
	if s.Replicas == 0 {
		return
	}
	watch := "watches work"
	if s.FailingSeconds > 0 {
		watch = "a watch fails for " + rounded(s.FailingSeconds)
	}
	verb := " waits"
	if s.Replicas > 1 {
		verb = "s wait"
	}
	fmt.Fprintf(b, "\n%d replica%s to lead, without controllers; cache %s in %.0f objects; %s\n", s.Replicas, verb,
		bytesText(s.CacheBytes), s.CacheObjects, watch)
}

// rounded formats a time in whole seconds.
func rounded(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

// cache draws the caches with the most bytes.
func (t *Table) cache(b *strings.Builder) {
	if len(t.Cache) == 0 {
		return
	}
	b.WriteString("\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "CACHE\tOBJECTS\tSIZE\tWATCH")
	for _, c := range t.Cache[:min(maxCached, len(t.Cache))] {
		watch := "works"
		if c.FailingSeconds > 0 {
			watch = "fails for " + rounded(c.FailingSeconds)
		}
		_, _ = fmt.Fprintf(w, "%s\t%.0f\t%s\t%s\n", printable.Text(c.Resource, maxName), c.Objects, bytesText(c.Bytes), watch)
	}
	_ = w.Flush() // a strings.Builder takes everything
	if rest := len(t.Cache) - maxCached; rest > 0 {
		fmt.Fprintf(b, "… %d more resources\n", rest)
	}
}

// trimmed removes spaces at the ends of lines.
func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// seconds formats a quantile with two digits.
func seconds(value *float64, sinceStart bool) string {
	if value == nil || math.IsNaN(*value) {
		return "-"
	}
	number := *value
	unit := " s"
	if number < 1 {
		number *= 1000
		unit = " ms"
	}
	text := fmt.Sprintf("%.2g", number) + unit
	if number >= 100 {
		text = fmt.Sprintf("%.0f", number) + unit
	}
	if sinceStart {
		text += "*"
	}
	return text
}

func bytesText(n float64) string {
	for _, unit := range []string{"B", "kB", "MB"} {
		if n < 1000 {
			return fmt.Sprintf("%.3g %s", n, unit)
		}
		n /= 1000
	}
	return fmt.Sprintf("%.3g GB", n)
}
