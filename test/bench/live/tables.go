package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// table is a Markdown table.
type table struct {
	title   string
	columns []string
	rows    [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table, or nothing if it has no rows.
func (t *table) write(out io.Writer) error {
	if len(t.rows) == 0 {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n\n", t.title)
	line(&b, t.columns)
	line(&b, slices.Repeat([]string{"---"}, len(t.columns)))
	for _, row := range t.rows {
		line(&b, row)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func line(b *strings.Builder, cells []string) { fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | ")) }

// tables prints the report.
func (r *report) tables(out io.Writer) error {
	all := []*table{
		r.driftTable(), r.buildTable(), r.fleetTable(), r.idleTable(), r.partsTable(), r.roundsTable(), r.scaleTable(),
		r.startTable(), r.failoverTable(), r.memoryTable(),
		r.countedTable(),
	}
	for _, t := range all {
		if err := t.write(out); err != nil {
			return err
		}
	}
	for _, s := range r.Skipped {
		if _, err := fmt.Fprintf(out, "\n%s was skipped: the engine refuses it: %s\n", s.Transport, s.Reason); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out,
		"\nMeasured on %d CPUs, which engine, hook, API server, etcd and the benchmark share.\n", r.CPUs)
	return err
}

func (r *report) driftTable() *table {
	t := &table{
		title: "**drift**: one child of one parent is edited; per edit",
		columns: []string{
			"transport",
			"children",
			"p50",
			"p90",
			"max",
			"engine CPU",
			"hook CPU",
			"to the hook",
			"from the hook",
			"syncs",
			"hook calls",
			"API writes",
			"idle: engine CPU per sync",
			"RSS",
			"peak",
		},
	}
	for _, d := range r.Drift {
		n := d.Rounds
		t.add(
			string(d.Transport),
			fmt.Sprint(d.Children),
			ms(percentile(d.Latencies, 50)),
			ms(percentile(d.Latencies, 90)),
			ms(percentile(d.Latencies, 100)),
			ms(
				each(d.Drift.EngineCPU, n),
			),
			ms(each(d.Drift.HookCPU, n)),
			size(d.Drift.Sent/int64(n)),
			size(d.Drift.Received/int64(n)),
			per(sum(d.Drift.Syncs), n),
			per(sum(d.Drift.Calls), n),
			per(sum(d.Drift.Writes), n),
			ms(each(d.Idle.EngineCPU, sum(d.Idle.Syncs))),
			size(d.RSS),
			size(d.Peak),
		)
	}
	return t
}

func (r *report) buildTable() *table {
	t := &table{
		title: "**build**: all children of one parent are created; the floor is a bare client with 64 goroutines " +
			"that creates plain ConfigMaps in the same run",
		columns: []string{
			"transport",
			"children",
			"wall",
			"creates/s",
			"floor/s",
			"of the floor",
			"engine CPU",
			"hook CPU",
			"to the hook",
			"from the hook",
			"syncs",
			"hook calls",
			"API requests",
			"engine CPU until rest",
		},
	}
	for _, d := range r.Drift {
		c := d.Converge
		speed := float64(d.Children) / c.Wall.Seconds()
		t.add(string(d.Transport), fmt.Sprint(d.Children), ms(c.Wall), fmt.Sprintf("%.0f", speed),
			fmt.Sprintf("%.0f", d.Floor), fmt.Sprintf("%.2f", speed/d.Floor), ms(c.EngineCPU), ms(c.HookCPU),
			size(c.Sent), size(c.Received), fmt.Sprint(sum(c.Syncs)), fmt.Sprint(sum(c.Calls)),
			fmt.Sprint(sum(c.Requests)), ms(d.Settle.EngineCPU))
	}
	return t
}

func (r *report) fleetTable() *table {
	t := &table{
		title: fmt.Sprintf(
			"**converge**, **update**, **idle**: many parents with %d children each appear, change, and are touched",
			perParent),
		columns: []string{
			"transport",
			"parents",
			"workload",
			"wall",
			"creates/s",
			"floor/s",
			"engine CPU",
			"of the bare client",
			"engine CPU per sync",
			"hook CPU",
			"to the hook",
			"from the hook",
			"syncs",
			"hook calls",
			"per parent, by the changed input",
			"API requests",
			"API writes",
			"RSS",
			"peak",
		},
	}
	floor := r.bareFleet()
	for _, f := range r.Fleet {
		t.fleetRow(f, "converge", f.Converge, floor.Converge,
			ms(f.Converge.Wall)+" (all parents created after "+ms(f.Created)+")",
			fmt.Sprintf("%.0f", float64(perParent*f.Parents)/f.Converge.Wall.Seconds()), fmt.Sprintf("%.0f", f.Floor))
		t.fleetRow(f, "update", f.Update, floor.Update, ms(f.Update.Wall), "", "")
		t.fleetRow(f, fmt.Sprintf("idle, %d touches", f.Touches), f.Idle, floor.Idle, ms(f.Idle.Wall), "", "")
	}
	return t
}

// idleTable has the costs of touches by their rate. The kernel wakes a process for each event if
// they come one after the other; it finds several of them if they come fast.
func (r *report) idleTable() *table {
	t := &table{
		title: "**idle, by rate**: engine or bare client, for each touch of a parent that changes nothing for the hook: " +
			"one after the other, and as fast as the API server takes them",
		columns: []string{
			"transport", "touches", "per second", "engine CPU", "of which in the kernel", "of the bare client",
			"waits of threads", "hook CPU", "hook calls", "to the hook", "from the hook",
		},
	}
	floor := r.bareFleet()
	add := func(of transport, rate string, n int, c, bare cost) {
		share := 0.0
		if c.EngineCPU > 0 {
			share = c.EngineKernel.Seconds() / c.EngineCPU.Seconds()
		}
		t.add(string(of), fmt.Sprintf("%d, %s", n, rate), fmt.Sprintf("%.0f", float64(n)/c.Wall.Seconds()),
			ms(each(c.EngineCPU, n)), fmt.Sprintf("%.0f %%", 100*share), ratio(c.EngineCPU, bare.EngineCPU),
			per(c.EngineWaits, n), ms(each(c.HookCPU, n)), per(sum(c.Calls), n),
			size(c.Sent/int64(max(1, n))), size(c.Received/int64(max(1, n))))
	}
	for _, f := range r.Fleet {
		add(f.Transport, "one after the other", f.Touches, f.Idle, floor.Idle)
		add(f.Transport, "as fast as possible", f.SaturatedTouches, f.Saturated, floor.Saturated)
	}
	return t
}

// bareFleet returns the bare client's result.
func (r *report) bareFleet() fleet {
	for _, f := range r.Fleet {
		if f.Transport == bare {
			return f
		}
	}
	return fleet{}
}

func (t *table) fleetRow(f fleet, workload string, c, floor cost, wall, creates, rate string) {
	t.add(string(f.Transport), fmt.Sprint(f.Parents), workload, wall, creates, rate, ms(c.EngineCPU),
		ratio(c.EngineCPU, floor.EngineCPU), ms(each(c.EngineCPU, sum(c.Syncs))), ms(c.HookCPU),
		size(c.Sent), size(c.Received), fmt.Sprint(sum(c.Syncs)), fmt.Sprint(sum(c.Calls)), shares(c.Changed, f.Parents),
		fmt.Sprint(sum(c.Requests)), fmt.Sprint(sum(c.Writes)), size(f.RSS), size(f.Peak))
}

// memoryTable shows where the memory of the measured process is.
func (r *report) memoryTable() *table {
	t := &table{
		title: fmt.Sprintf("**memory** of the measured process at the end, and after %s without an event; the live heap is "+
			"what a garbage collection leaves", restedFor),
		columns: []string{
			"transport", "workload", "RSS", "of the program's file", "peak", "RSS after a rest", "live heap",
			"the rest of RSS to the live heap",
		},
	}
	add := func(of transport, workload string, m memory) {
		live := ""
		share := ""
		rested := ""
		if m.Rested > 0 {
			rested = size(m.Rested)
		}
		if m.Live > 0 {
			live = size(m.Live)
			share = fmt.Sprintf("%.2f ×", float64(m.RSS-m.File)/float64(m.Live))
		}
		t.add(string(of), workload, size(m.RSS), size(m.File), size(m.Peak), rested, live, share)
	}
	for _, d := range r.Drift {
		add(d.Transport, fmt.Sprintf("%d children", d.Children), d.memory)
	}
	for _, p := range r.Parts {
		add(p.Transport, fmt.Sprintf("%d inputs", p.Inputs), p.memory)
	}
	for _, f := range r.Fleet {
		add(f.Transport, fmt.Sprintf("%d parents", f.Parents), f.memory)
	}
	for _, one := range r.Scale {
		for _, z := range one.Sizes {
			add(one.Transport, fmt.Sprintf("%d objects", z.Objects), z.memory)
		}
		add(one.Transport, "after a restart", one.Restart.memory)
	}
	return t
}

// countedTable explains the sums of the other tables.
func (r *report) countedTable() *table {
	t := &table{
		title: "Totals: syncs by result, hook calls by code, requests to the API server by method, " +
			"writes as its audit log has them",
		columns: []string{"transport", "workload", "syncs", "hook calls", "API requests", "API writes"},
	}
	add := func(of transport, workload string, c cost) {
		t.add(string(of), workload, counts(c.Syncs), counts(c.Calls), counts(c.Requests), counts(c.Writes))
	}
	for _, d := range r.Drift {
		of := fmt.Sprintf(" %d", d.Children)
		add(d.Transport, "build"+of, d.Converge)
		add(d.Transport, "build"+of+", until rest", d.Settle)
		add(d.Transport, fmt.Sprintf("drift%s, %d edits", of, d.Rounds), d.Drift)
		add(d.Transport, fmt.Sprintf("idle%s, %d touches", of, d.Touches), d.Idle)
	}
	for _, p := range r.Parts {
		of := fmt.Sprintf(" %d inputs", p.Inputs)
		add(p.Transport, "build"+of, p.Build)
		add(p.Transport, "build"+of+", until rest", p.Settle)
		add(p.Transport, fmt.Sprintf("edit%s, %d edits", of, p.Rounds), p.Edit)
		add(p.Transport, "change"+of, p.Change)
	}
	for _, one := range r.Scale {
		for _, z := range one.Sizes {
			of := fmt.Sprintf(" %d", z.Parents)
			add(one.Transport, "build"+of, z.Build)
			add(one.Transport, fmt.Sprintf("drift%s, %d edits", of, z.Events), z.Drift)
			add(one.Transport, fmt.Sprintf("touch%s, %d touches", of, z.Events), z.Touch)
			add(one.Transport, fmt.Sprintf("related%s, %d touches", of, z.Events/perTheme), z.Related)
		}
		add(one.Transport, "restart", cost{Syncs: map[string]int{"in all": one.Restart.Syncs}, Writes: one.Restart.Writes})
		add(one.Transport, "failover", cost{Writes: one.Failover.Writes})
	}
	for _, f := range r.Fleet {
		add(f.Transport, "converge", f.Converge)
		add(f.Transport, "update", f.Update)
		add(f.Transport, fmt.Sprintf("idle, %d touches", f.Touches), f.Idle)
		add(f.Transport, fmt.Sprintf("idle, %d touches as fast as possible", f.SaturatedTouches), f.Saturated)
	}
	return t
}

// percentile returns the least value that p percent of the ascending values do not exceed.
func percentile(ascending []time.Duration, p int) time.Duration {
	return ascending[max(0, (len(ascending)*p+99)/100-1)]
}

func sum(counts map[string]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

// counts formats numbers: "3 GET, 1 POST".
func counts(of map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, fmt.Sprintf("%d %s", of[name], name))
	}
	return strings.Join(all, ", ")
}

// shares formats numbers per item: "1.0 first, 1.0 child".
func shares(of map[string]int, items int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, per(of[name], items)+" "+name)
	}
	return strings.Join(all, ", ")
}

// each returns the share of one item, or 0 without items.
func each(d time.Duration, n int) time.Duration { return d / time.Duration(max(1, n)) }

// ratio formats a share of a floor; empty without a floor.
func ratio(of, floor time.Duration) string {
	if floor == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f ×", of.Seconds()/floor.Seconds())
}

func per(count, n int) string { return fmt.Sprintf("%.1f", float64(count)/float64(max(1, n))) }

func ms(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2f ms", d.Seconds()*1000)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1000)
	default:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
}

func size(bytes int64) string {
	switch {
	case bytes < 10_000:
		return fmt.Sprintf("%d B", bytes)
	case bytes < 1_000_000:
		return fmt.Sprintf("%.0f kB", float64(bytes)/1e3)
	default:
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	}
}
