package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// secrets is the resource of the inputs.
var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// parts is the cost of one parent of a MapController with many inputs. Each has one output.
type parts struct {
	Transport transport `json:"transport"`
	Inputs    int       `json:"inputs"`
	// Floor is the number of ConfigMaps per second that a bare client creates on this machine: the
	// mean of before and after.
	Floor float64 `json:"floorPerSecond"`
	// Build is the cost from the parent's creation until all outputs exist, Settle that until the
	// engine rests.
	Build  cost `json:"build"`
	Settle cost `json:"settle"`
	// Rounds is the number of edits of one input. Latencies are the times from the response to the
	// edit until the API server has the changed output, in ascending order.
	Rounds    int             `json:"rounds"`
	Latencies []time.Duration `json:"latenciesNs"`
	Edit      cost            `json:"edit"`
	// Change is the cost of a change of the parent that changes all outputs.
	Change cost `json:"change"`
	memory
}

// parts runs the workload with n inputs.
func (s *stage) parts(ctx context.Context, n int) (parts, error) {
	p := parts{Transport: s.transport, Inputs: n, Rounds: s.rounds + s.rounds%2}
	s.mapping = true
	if err := s.floor(ctx, n); err != nil {
		return p, err
	}
	if err := s.ready(ctx); err != nil {
		return p, err
	}
	err := atOnce(ctx, n, func(ctx context.Context, i int) error {
		return s.create(ctx, secrets, namespace, object{
			"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": inputName(i), "labels": object{"in": "yes"}},
		})
	})
	if err != nil {
		return p, err
	}
	v, err := follow(ctx, s.typed)
	if err != nil {
		return p, err
	}
	defer v.close()
	for _, step := range []func(context.Context, *view) error{p.build(s), p.edit(s), p.change(s)} {
		if err := step(ctx, v); err != nil {
			return p, err
		}
	}
	p.memory, err = s.memory(ctx, 0)
	if err != nil {
		return p, err
	}
	p.Floor, err = s.floorAgain(ctx, n)
	return p, err
}

// build creates the parent and waits for all outputs.
func (p *parts) build(s *stage) func(context.Context, *view) error {
	return func(ctx context.Context, v *view) error {
		if err := s.rests(ctx); err != nil {
			return err
		}
		since, err := s.begin(ctx)
		if err != nil {
			return err
		}
		parent := s.parent("crowd", 0, text)
		parent["spec"].(object)["selector"] = object{"matchLabels": object{"in": "yes"}}
		if err := s.create(ctx, crowds, namespace, parent); err != nil {
			return err
		}
		done, err := v.awaitAll(ctx, p.Inputs, text)
		if err != nil {
			return err
		}
		p.Build, p.Settle, err = s.inTwo(ctx, since, done, func(ctx context.Context) error {
			return s.awaitStatus(ctx, p.Inputs)
		})
		s.progress("  all outputs exist after %s", p.Build.Wall.Round(time.Millisecond))
		return err
	}
}

// edit changes inputs, one after the other: each gets a text of its own, and loses it again.
func (p *parts) edit(s *stage) func(context.Context, *view) error {
	return func(ctx context.Context, v *view) error {
		since, err := s.begin(ctx)
		if err != nil {
			return err
		}
		for round := range p.Rounds {
			name := inputName((round - round%2) * p.Inputs / p.Rounds)
			value := strconv.Quote(edited)
			want := edited
			if round%2 == 1 {
				value = "null"
				want = text
			}
			latency, err := s.editInput(ctx, v, name, value, want)
			if err != nil {
				return err
			}
			p.Latencies = append(p.Latencies, latency)
			if err := s.rests(ctx); err != nil {
				return err
			}
		}
		slices.Sort(p.Latencies)
		s.progress("  %d edits followed", p.Rounds)
		p.Edit, err = s.end(ctx, since, time.Now())
		return err
	}
}

// awaitStatus waits until the parent's status counts n outputs of its last generation, and the
// engine rests.
func (s *stage) awaitStatus(ctx context.Context, n int) error {
	err := poll(ctx, "the parent's status is complete", func(ctx context.Context) error {
		o, err := s.client.Resource(crowds).Namespace(namespace).Get(ctx, "crowd", metav1.GetOptions{})
		if err != nil {
			return err
		}
		generation, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		total, _, _ := unstructured.NestedInt64(o.Object, "status", "outputs", "configmaps", "total")
		if generation != o.GetGeneration() || total != int64(n) {
			return fmt.Errorf("it has %d outputs, of generation %d", total, generation)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.rests(ctx)
}

// editInput sets the annotation of an input to a JSON value. It returns the time from the API
// server's response until the output has the wanted text.
func (s *stage) editInput(ctx context.Context, v *view, name, value, want string) (time.Duration, error) {
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{"bench.example.com/text":%s}}}`, value)
	o, err := s.client.Resource(secrets).Namespace(namespace).Patch(ctx, name, types.MergePatchType, body,
		metav1.PatchOptions{})
	if err != nil {
		return 0, err
	}
	answered := time.Now()
	version, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("input %s: resourceVersion: %w", name, err)
	}
	followed, err := v.awaitOne(ctx, name, version, want)
	return max(0, followed.Sub(answered)), err
}

// change changes the text of the parent, and with it all outputs.
func (p *parts) change(s *stage) func(context.Context, *view) error {
	return func(ctx context.Context, v *view) error {
		since, err := s.begin(ctx)
		if err != nil {
			return err
		}
		const then = "second"
		_, err = s.client.Resource(crowds).Namespace(namespace).Patch(ctx, "crowd", types.MergePatchType,
			[]byte(`{"spec":{"text":"`+then+`"}}`), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		done, err := v.awaitAll(ctx, p.Inputs, then)
		if err != nil {
			return err
		}
		if err := s.awaitStatus(ctx, p.Inputs); err != nil {
			return err
		}
		p.Change, err = s.end(ctx, since, done)
		s.progress("  all outputs changed after %s", p.Change.Wall.Round(time.Millisecond))
		return err
	}
}

// mapController returns the controller of the workload.
func (s *stage) mapController() object {
	return object{
		"apiVersion": v1alpha1.GroupVersion.String(),
		"kind":       v1alpha1.MapControllerKind,
		"metadata":   object{"name": "bench"},
		"spec": object{
			"parentResource": object{"apiVersion": "bench.example.com/v1", "resource": "crowds"},
			"inputResources": []any{object{"apiVersion": "v1", "resource": "secrets"}},
			"outputResources": []any{
				object{"apiVersion": "v1", "resource": "configmaps", "updateStrategy": object{"method": "InPlace"}},
			},
			"hooks": object{"map": s.hookField("/map")},
		},
	}
}

func inputName(i int) string { return fmt.Sprintf("input-%d", i) }

// partsTable has one row for each number of inputs.
func (r *report) partsTable() *table {
	t := &table{
		title: "**inputs**: one input of one parent of a MapController is edited; per edit",
		columns: []string{
			"transport", "inputs", "p50", "p90", "max", "engine CPU", "hook CPU", "to the hook", "from the hook", "syncs",
			"hook calls", "API writes", "RSS", "peak",
		},
	}
	for _, p := range r.Parts {
		n := p.Rounds
		t.add(string(p.Transport), fmt.Sprint(p.Inputs), ms(percentile(p.Latencies, 50)), ms(percentile(p.Latencies, 90)),
			ms(percentile(p.Latencies, 100)), ms(each(p.Edit.EngineCPU, n)), ms(each(p.Edit.HookCPU, n)),
			size(p.Edit.Sent/int64(n)), size(p.Edit.Received/int64(n)), per(sum(p.Edit.Syncs), n), per(sum(p.Edit.Calls), n),
			per(sum(p.Edit.Writes), n), size(p.RSS), size(p.Peak))
	}
	return t
}

// roundsTable has two rows for each number of inputs: the build, and a change of the parent.
func (r *report) roundsTable() *table {
	t := &table{
		title: "**all inputs**: the parent appears, then changes; the floor is that of the build",
		columns: []string{
			"transport", "inputs", "workload", "wall", "outputs/s", "floor/s", "of the floor", "engine CPU", "hook CPU",
			"to the hook", "from the hook", "hook calls", "status writes",
		},
	}
	for _, p := range r.Parts {
		row := func(workload string, c cost, status int, floor ...string) {
			t.add(slices.Concat([]string{
				string(p.Transport), fmt.Sprint(p.Inputs), workload, ms(c.Wall),
				fmt.Sprintf("%.0f", float64(p.Inputs)/c.Wall.Seconds()),
			}, floor, []string{
				ms(c.EngineCPU), ms(c.HookCPU), size(c.Sent), size(c.Received), fmt.Sprint(sum(c.Calls)), fmt.Sprint(status),
			})...)
		}
		speed := float64(p.Inputs) / p.Build.Wall.Seconds()
		row("build", p.Build, statusWrites(p.Build)+statusWrites(p.Settle), fmt.Sprintf("%.0f", p.Floor),
			fmt.Sprintf("%.2f", speed/p.Floor))
		row("change of the parent", p.Change, statusWrites(p.Change), "", "")
	}
	return t
}

// statusWrites returns the number of writes of the parents' status.
func statusWrites(c cost) int {
	return c.Writes["patch crowds/status"] + c.Writes["update crowds/status"]
}
