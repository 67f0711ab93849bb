package integration

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// crowd is a set of parents that are edited all the time, one after the other, round after round.
// Each has three children, and their text is the number of the round.
type crowd struct {
	*kit.Kit
	size   int
	rounds atomic.Int64
	stop   context.CancelFunc
	ended  chan error
}

// crowdChildren are the suffixes of the children's names.
var crowdChildren = []string{"a", "b", "c"}

// pace is the time between two edits. A shorter time would test the machine.
const pace = 30 * time.Millisecond

// startCrowd creates the parents and then edits them, until the test ends or halt is called.
func startCrowd(k *kit.Kit, size int) *crowd {
	k.Helper()
	ctx, cancel := context.WithCancel(k.Context())
	c := &crowd{Kit: k, size: size, stop: cancel, ended: make(chan error, 1)}
	go func() { c.ended <- c.edit(ctx) }()
	k.Cleanup(cancel)
	return c
}

// edit edits the parents round after round. It ends after a complete round.
func (c *crowd) edit(ctx context.Context) error {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for ctx.Err() == nil {
		next := c.rounds.Load() + 1
		for i := range c.size {
			<-tick.C
			if err := c.TryApply(c.web(i, next)); err != nil {
				return fmt.Errorf("round %d: %w", next, err)
			}
		}
		c.rounds.Store(next)
	}
	return nil
}

func (c *crowd) web(i int, round int64) *unstructured.Unstructured {
	var children []any
	for _, suffix := range crowdChildren {
		children = append(children, configMap(fmt.Sprintf("%s-%s", c.name(i), suffix), strconv.FormatInt(round, 10)))
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": c.Group + "/v1", "kind": "Web", "metadata": map[string]any{"name": c.name(i), "namespace": c.Namespace},
		"spec": map[string]any{"answer": map[string]any{"children": children}},
	}}
}

func (c *crowd) name(i int) string { return fmt.Sprintf("web-%02d", i) }

// await waits until each parent has been edited again and its children have reached that round.
func (c *crowd) await() {
	c.Helper()
	want := c.rounds.Load() + 2
	c.Eventually(fmt.Sprintf("round %d is over", want), func() error {
		select {
		case err := <-c.ended:
			c.Fatalf("the edits have ended: %v", err)
		default:
		}
		if now := c.rounds.Load(); now < want {
			return fmt.Errorf("now is round %d", now)
		}
		return nil
	})
	c.Eventually(fmt.Sprintf("all children are of round %d", want), func() error { return c.reached(want) })
}

// reached returns an error that names the children older than a round.
func (c *crowd) reached(round int64) error {
	found := map[string]int64{}
	for _, o := range c.List("v1/ConfigMap") {
		found[o.GetName()] = roundOf(&o)
	}
	var late []string
	for i := range c.size {
		for _, suffix := range crowdChildren {
			if name := c.name(i) + "-" + suffix; found[name] < round {
				late = append(late, fmt.Sprintf("%s is of round %d", name, found[name]))
			}
		}
	}
	if len(late) > 0 {
		return errors.New(strings.Join(late, ", "))
	}
	return nil
}

// roundOf returns the round of a child, or 0 if its text is not a number.
func roundOf(o *unstructured.Unstructured) int64 {
	text, _, _ := unstructured.NestedString(o.Object, "data", "text")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// halt ends the edits, and waits until the children have the parents' last text.
func (c *crowd) halt() {
	c.Helper()
	c.stop()
	if err := <-c.ended; err != nil {
		c.Fatal(err)
	}
	c.Eventually("the children have the parents' text", func() error { return c.reached(c.rounds.Load()) })
}

// servedBy returns the number of parents that a hook answered last, by their status.
func (c *crowd) servedBy(hook string) int {
	c.Helper()
	n := 0
	for _, o := range c.List("Web") {
		if by, _, _ := unstructured.NestedString(o.Object, "status", "by"); by == hook {
			n++
		}
	}
	return n
}

// judge checks every version of a child: its text is a text of the parent and not older than
// before, and the child was never deleted.
func (c *crowd) judge(h *kit.History) {
	c.Helper()
	last := map[string]int64{}
	for _, v := range h.Versions() {
		name := v.GetName()
		round := roundOf(v.Unstructured)
		switch {
		case !strings.HasPrefix(name, "web-"): // an object of the namespace itself
		case v.Deleted:
			c.Errorf("%s was deleted", name)
		case round < 1 || round > c.rounds.Load():
			c.Errorf("%s has %v, which no parent had", name, v.Object["data"])
		case round < last[name]:
			c.Errorf("%s went back from round %d to %d", name, last[name], round)
		default:
			last[name] = round
		}
	}
	if want := c.size * len(crowdChildren); len(last) != want {
		c.Errorf("there were %d children, want %d", len(last), want)
	}
}

// judgeWrites checks the engines' writes since a mark: each child was created once, none was
// deleted, and no parent reports a fault.
func (c *crowd) judgeWrites(since cluster.Mark) {
	c.Helper()
	for i := range c.size {
		c.AwaitSynced("Web", c.name(i))
	}
	creates := map[string]int{}
	for _, w := range c.Writes(since) {
		switch {
		case w.Resource != "configmaps":
		case w.Verb == "delete" || w.Verb == "deletecollection":
			c.Errorf("a child was deleted: %s", w)
		case w.Verb == "create" && w.Code < 300:
			creates[w.Name]++
		}
	}
	for name, n := range creates {
		if n != 1 {
			c.Errorf("%s was created %d times", name, n)
		}
	}
	if want := c.size * len(crowdChildren); len(creates) != want {
		c.Errorf("%d children were created, want %d", len(creates), want)
	}
}

// streamCounts are an engine's metrics of its streams.
type streamCounts struct {
	Snapshots, Changes, Nacks, Mismatches, Kept, Lost int
}

// countsOf reads the metrics.
func countsOf(k *kit.Kit, e *serve.Engine) (c streamCounts) {
	k.Helper()
	text, err := serve.Fetch(k.Context(), "http://"+e.Metrics+"/metrics")
	if err != nil {
		k.Fatal(err)
	}
	for series, at := range map[string]*int{
		`hookloop_stream_calls_total{set="snapshot"} `:              &c.Snapshots,
		`hookloop_stream_calls_total{set="change"} `:                &c.Changes,
		`hookloop_stream_repeats_total{cause="nack"} `:              &c.Nacks,
		`hookloop_stream_repeats_total{cause="mismatch"} `:          &c.Mismatches,
		`hookloop_stream_reconnected_subjects_total{state="kept"} `: &c.Kept,
		`hookloop_stream_reconnected_subjects_total{state="lost"} `: &c.Lost,
	} {
		_, value, found := strings.Cut(text, "\n"+series)
		if !found {
			continue // no such series
		}
		if _, err := fmt.Sscan(value, at); err != nil {
			k.Fatalf("%s: %v", series, err)
		}
	}
	return c
}

// atMost fails the test if the number of snapshots is greater than the losses explain, or if
// questions were repeated.
func (c streamCounts) atMost(t *testing.T, snapshots int, reason string) {
	t.Helper()
	t.Logf("%s: %+v; at most %d snapshots are due", reason, c, snapshots)
	if c.Snapshots > snapshots {
		t.Errorf("%s: %d snapshots, want at most %d", reason, c.Snapshots, snapshots)
	}
	if c.Nacks+c.Mismatches > 0 {
		t.Errorf("%s: %d and %d questions were repeated, want none", reason, c.Nacks, c.Mismatches)
	}
}
