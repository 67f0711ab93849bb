package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A small run over every transport takes seconds. No figure is checked.
func TestSmallRuns(t *testing.T) {
	programs := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", programs, "../hook", "../bare").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Run("a webhook, all workloads", func(t *testing.T) {
		t.Parallel()
		r := small(t, programs, "-transports", "webhook", "-parents", "4", "-inputs", "20")
		if len(r.Drift) != 1 || len(r.Fleet) != 2 || len(r.Parts) != 1 {
			t.Fatalf("%d drift, %d fleet and %d inputs results, want one of each, and the bare client's fleet",
				len(r.Drift), len(r.Fleet), len(r.Parts))
		}
		checkParts(t, r.Parts[0])
		checkDrift(t, r.Drift[0])
		checkFleet(t, r.Fleet[1])
		if f := r.Fleet[0]; f.Transport != bare || f.Converge.EngineCPU == 0 {
			t.Errorf("the bare client's result is %+v", f)
		}
		same(t, "converge", r.Fleet[0].Converge, r.Fleet[1].Converge)
		same(t, "update", r.Fleet[0].Update, r.Fleet[1].Update)
	})
	t.Run("many parents", func(t *testing.T) {
		t.Parallel()
		r := small(t, programs, "-scale", "-parents", "40")
		if len(r.Scale) != 1 || len(r.Fleet)+len(r.Drift)+len(r.Parts) > 0 {
			t.Fatalf("%d scale results of %+v, want one, and no others", len(r.Scale), r)
		}
		checkScale(t, r.Scale[0])
	})
	t.Run("gRPC, drift", func(t *testing.T) {
		t.Parallel()
		r := small(t, programs, "-transports", "unary,stream", "-parents", "0", "-inputs", "")
		if len(r.Drift) == 0 || len(r.Drift)+len(r.Skipped) != 2 {
			t.Fatalf(
				"%d drift results, skipped %v, want unary and stream; an engine without streams may refuse those",
				len(r.Drift), r.Skipped)
		}
		for _, d := range r.Drift {
			checkDrift(t, d)
		}
	})
}

func small(t *testing.T, programs string, args ...string) report {
	t.Helper()
	o, err := parse(append([]string{
		"-children", "20", "-rounds", "2", "-idle", "2", "-json",
		"-hook", filepath.Join(programs, "hook"), "-bare", filepath.Join(programs, "bare"),
	}, args...))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), o, &out, t.Logf); err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	if err := r.tables(io.Discard); err != nil {
		t.Error(err)
	}
	return r
}

func checkParts(t *testing.T, p parts) {
	t.Helper()
	if got := p.Build.Writes["create configmaps"] + p.Settle.Writes["create configmaps"]; got != p.Inputs {
		t.Errorf("%s: the audit log has %d ConfigMaps created, want %d", p.Transport, got, p.Inputs)
	}
	if got := p.Edit.Writes["update configmaps"]; got != p.Rounds {
		t.Errorf("%s: %d edits brought the writes %v, want an update each", p.Transport, p.Rounds, p.Edit.Writes)
	}
	if got := p.Change.Writes["update configmaps"]; got != p.Inputs {
		t.Errorf("%s: the audit log has %d ConfigMaps updated, want %d", p.Transport, got, p.Inputs)
	}
	if p.Floor == 0 {
		t.Errorf("%s: the floor was not measured", p.Transport)
	}
	if len(p.Latencies) != p.Rounds || statusWrites(p.Build)+statusWrites(p.Settle) == 0 {
		t.Errorf("%s: something was not counted: %+v", p.Transport, p)
	}
}

func checkScale(t *testing.T, s scale) {
	t.Helper()
	parents := 0
	for _, z := range s.Sizes {
		if got, want := z.Build.Writes["create configmaps"], perLarge*(z.Parents-parents); got != want {
			t.Errorf("%d parents: the audit log has %d ConfigMaps created, want %d", z.Parents, got, want)
		}
		if got := z.Drift.Writes["update configmaps"]; got != z.Events {
			t.Errorf("%d parents: %d edits brought the writes %v, want an update each", z.Parents, z.Events, z.Drift.Writes)
		}
		for name, c := range map[string]cost{"touch": z.Touch, "related": z.Related} {
			if got := sum(c.Syncs); got < z.Events || len(c.Writes) > 0 {
				t.Errorf("%d parents, %s: %d syncs and the writes %v, want %d and none", z.Parents, name, got, c.Writes, z.Events)
			}
		}
		if len(z.Idle.Syncs) > 0 || z.Objects < (perLarge+1)*z.Parents || z.JSON == 0 || z.Live == 0 {
			t.Errorf("%d parents: something was not counted: %+v", z.Parents, z)
		}
		parents = z.Parents
	}
	if r := s.Restart; len(s.Sizes) != 3 || parents != 40 || r.Syncs < parents || len(r.Writes) > 0 || r.Ready == 0 {
		t.Errorf("%d sizes up to %d parents, and the restart is %+v, want syncs of 40 parents, and no writes",
			len(s.Sizes), parents, r)
	}
	if f := s.Failover; f.Asked == 0 || f.First == 0 || len(f.Writes) > 0 || f.Leading.Live == 0 || f.Waiting.Live == 0 {
		t.Errorf("the failover is %+v, want its times, the memory of both replicas, and no writes", f)
	}
}

func checkFleet(t *testing.T, f fleet) {
	t.Helper()
	if got := f.Converge.Writes["create configmaps"]; got != perParent*f.Parents {
		t.Errorf("%s: the audit log has %d ConfigMaps created, want %d", f.Transport, got, perParent*f.Parents)
	}
	if got := f.Update.Writes["update configmaps"]; got != perParent*f.Parents {
		t.Errorf("%s: the audit log has %d ConfigMaps updated, want %d", f.Transport, got, perParent*f.Parents)
	}
	if len(f.Idle.Writes) > 0 || sum(f.Idle.Syncs) == 0 {
		t.Errorf("%s: idle counted writes %v and syncs %v, want syncs and no writes", f.Transport, f.Idle.Writes,
			f.Idle.Syncs)
	}
	if len(f.Saturated.Writes) > 0 || sum(f.Saturated.Syncs) == 0 || f.Saturated.EngineWaits == 0 {
		t.Errorf("%s: touches at once counted writes %v, syncs %v and %d waits, want syncs, waits and no writes",
			f.Transport, f.Saturated.Writes, f.Saturated.Syncs, f.Saturated.EngineWaits)
	}
}

// same checks that the bare client has written what the engine writes.
func same(t *testing.T, workload string, bare, engine cost) {
	t.Helper()
	want := maps.Clone(engine.Writes)
	delete(want, "patch compositecontrollers/status")
	if diff := cmp.Diff(want, bare.Writes); diff != "" {
		t.Errorf("%s, writes (-engine +bare client):\n%s", workload, diff)
	}
}

func checkDrift(t *testing.T, d drift) {
	t.Helper()
	if got := d.Converge.Writes["create configmaps"]; got != d.Children {
		t.Errorf("%s: the audit log has %d ConfigMaps created, want %d", d.Transport, got, d.Children)
	}
	if got := childWrites(d.Drift); !maps.Equal(got, map[string]int{"update configmaps": d.Rounds}) {
		t.Errorf("%s: %d edits brought the writes %v of children, want one update each", d.Transport, d.Rounds, got)
	}
	if len(d.Latencies) != d.Rounds || d.Drift.EngineCPU == 0 || d.Drift.HookCPU == 0 || d.Drift.Sent == 0 ||
		d.Drift.Received == 0 ||
		sum(d.Drift.Syncs) == 0 {
		t.Errorf("%s: something was not counted: %+v", d.Transport, d)
	}
	if d.Floor == 0 {
		t.Errorf("%s: the floor was not measured", d.Transport)
	}
	if len(d.Idle.Writes) > 0 {
		t.Errorf("%s: touching the parent brought writes %v, want none", d.Transport, d.Idle.Writes)
	}
}

// childWrites returns the writes of children: a status may be late.
func childWrites(c cost) map[string]int {
	writes := maps.Clone(c.Writes)
	maps.DeleteFunc(writes, func(what string, _ int) bool { return !strings.Contains(what, " configmaps") })
	return writes
}

func TestParse(t *testing.T) {
	o, err := parse([]string{"-transports", "stream,webhook", "-children", "", "-profile", "here"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.transports, []transport{stream, webhook}) || o.children != nil || o.rounds != 30 ||
		o.profile != "here" {
		t.Errorf("parse = %+v", o)
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-transports=carrier-pigeon", "-transports"},
		{"-children=10,0", "-children"},
		{"-children=ten", "-children"},
		{"-inputs=0", "-inputs"},
		{"-rounds=0", "-rounds"},
		{"-parents=-1", "-parents"},
		{"-scale -parents=19", "-parents"},
		{"more", "unexpected argument"},
	} {
		if _, err := parse(
			strings.Fields(c.args),
		); err == nil || errors.Is(err, flag.ErrHelp) ||
			!strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("parse(%s) = %v, want an error about %s", c.args, err, c.want)
		}
	}
}

func TestPercentile(t *testing.T) {
	var ten []time.Duration
	for i := range 10 {
		ten = append(ten, time.Duration(i+1))
	}
	for p, want := range map[int]time.Duration{0: 1, 10: 1, 50: 5, 51: 6, 90: 9, 100: 10} {
		if got := percentile(ten, p); got != want {
			t.Errorf("percentile %d of 1 … 10 is %d, want %d", p, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	a := &table{title: "A", columns: []string{"x", "y"}}
	a.add("1", ms(1500*time.Microsecond))
	a.add(size(12_345), counts(map[string]int{"POST": 2, "GET": 1}))
	var out strings.Builder
	if err := a.write(&out); err != nil {
		t.Fatal(err)
	}
	want := "\nA\n\n| x | y |\n| --- | --- |\n| 1 | 1.50 ms |\n| 12 kB | 1 GET, 2 POST |\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
