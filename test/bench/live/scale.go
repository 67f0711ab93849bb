package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// perLarge is the number of children of each parent of the scale workload, so that ten thousand
	// parents are a hundred thousand objects.
	perLarge = 9
	// perTheme is the number of parents that have one related Secret.
	perTheme = 10
	// scaleRounds is the number of times that each event of a size is repeated.
	scaleRounds = 3
	// restedFor is the time in which nothing happens.
	restedFor = 20 * time.Second
	// collectedAfter is the time after the last event in which the engine collects garbage.
	collectedAfter = 12 * time.Second
)

// scaleShares are the sizes at which the workload is measured, as shares of its parents.
var scaleShares = []float64{0.1, 0.2, 0.5, 1}

// scale is the cost of many objects.
type scale struct {
	Transport transport   `json:"transport"`
	Bytes     int         `json:"childBytes"`
	Sizes     []scaleSize `json:"sizes"`
	Restart   restart     `json:"restart"`
	Failover  failover    `json:"failover"`
}

// scaleSize is the cost of events at one number of parents.
type scaleSize struct {
	Parents int `json:"parents"`
	Objects int `json:"objects"`
	// JSON is the size of the cached objects as the engine counts it.
	JSON int64 `json:"jsonBytes"`
	// Build is the cost of the children since the size before.
	Built int  `json:"builtChildren"`
	Build cost `json:"build"`
	// Drift is the cost of Events edits of one child of different parents, Touch of Events changes of
	// a parent that do not affect its children, and Related of Events/perTheme changes of a related
	// object, each of which affects perTheme parents.
	Events  int  `json:"events"`
	Drift   cost `json:"drift"`
	Touch   cost `json:"touch"`
	Related cost `json:"related"`
	// Idle is the cost of restedFor without an event.
	Idle cost `json:"idle"`
	memory
}

// scale runs the workload.
func (s *stage) scale(ctx context.Context) (scale, error) {
	r := scale{Transport: s.transport, Bytes: s.bytes}
	s.themes = true
	v, err := s.watched(ctx)
	if err != nil {
		return r, err
	}
	defer v.close()
	before := 0
	events := 0
	for _, share := range scaleShares {
		n := max(perTheme, int(share*float64(s.parents))/perTheme*perTheme)
		if n <= before {
			continue
		}
		if events == 0 {
			events = n
		}
		size := scaleSize{Parents: n, Built: perLarge * (n - before), Events: scaleRounds * events}
		err := s.alive(ctx, v, size.grow(s, before), size.drift(s, events), size.touch(s, events), size.related(s, events),
			size.idle(s), size.held(s))
		if err != nil {
			return r, err
		}
		r.Sizes = append(r.Sizes, size)
		before = n
	}
	r.Restart, err = s.restart(ctx, before)
	if err != nil {
		return r, fmt.Errorf("restart: %w", err)
	}
	r.Failover, err = s.failover(ctx)
	if err != nil {
		return r, fmt.Errorf("failover: %w", err)
	}
	return r, nil
}

// grow creates parents, and their related objects, until there are z.Parents.
func (z *scaleSize) grow(s *stage, before int) func(context.Context, *view) error {
	return func(ctx context.Context, v *view) error {
		since, err := s.begin(ctx)
		if err != nil {
			return err
		}
		err = atOnce(ctx, (z.Parents-before)/perTheme, func(ctx context.Context, i int) error {
			return s.create(ctx, secrets, namespace, object{
				"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": themeName(before + i*perTheme)},
			})
		})
		if err != nil {
			return err
		}
		for at := before; at < z.Parents; {
			n := min(scaleBatch, z.Parents-at)
			err := atOnce(ctx, n, func(ctx context.Context, i int) error {
				return s.create(ctx, crowds, namespace, s.themed(at+i))
			})
			if err != nil {
				return err
			}
			at += n
			z.Build, err = s.awaitTexts(ctx, v, since, perLarge*at, text)
			if err != nil {
				return err
			}
			s.progress("  %d parents have their children after %s", at, z.Build.Wall.Round(time.Millisecond))
		}
		return nil
	}
}

// scaleBatch is the number of parents that appear together. It bounds the time until the next
// success, so that a fault is found early.
const scaleBatch = 1000

func themeName(parent int) string { return fmt.Sprintf("theme-%d", parent/perTheme) }

// themed returns a parent with a related object.
func (s *stage) themed(i int) object {
	o := s.parent(parentName(i), perLarge, text)
	o["spec"].(object)["theme"] = themeName(i)
	return o
}

// drift edits one child of each of n parents.
func (z *scaleSize) drift(s *stage, n int) func(context.Context, *view) error {
	return s.repeat(&z.Drift, func(ctx context.Context, v *view, round int) error {
		versions := make([]int64, n)
		child := func(i int) string { return fmt.Sprintf("%s-%d", parentName(i), round) }
		err := atOnce(ctx, n, func(ctx context.Context, i int) error {
			o, err := s.typed.CoreV1().ConfigMaps(namespace).Patch(ctx, child(i), types.MergePatchType,
				[]byte(`{"data":{"text":"`+edited+`"}}`), metav1.PatchOptions{})
			if err != nil {
				return err
			}
			versions[i], err = strconv.ParseInt(o.ResourceVersion, 10, 64)
			return err
		})
		if err != nil {
			return err
		}
		repaired := 0
		_, err = v.await(ctx, "all edits are undone", func() bool {
			for repaired < n {
				if c := v.children[child(repaired)]; c.version <= versions[repaired] || c.text != text {
					return false
				}
				repaired++
			}
			return true
		})
		return err
	})
}

// touch touches n parents.
func (z *scaleSize) touch(s *stage, n int) func(context.Context, *view) error {
	return s.repeat(&z.Touch, func(ctx context.Context, _ *view, round int) error {
		before := s.proxy.Count()
		if err := atOnce(ctx, n, func(ctx context.Context, i int) error {
			return s.touch(ctx, parentName(i), round)
		}); err != nil {
			return err
		}
		return s.asked(ctx, before)
	})
}

// related touches the related objects of n parents.
func (z *scaleSize) related(s *stage, n int) func(context.Context, *view) error {
	return s.repeat(&z.Related, func(ctx context.Context, _ *view, round int) error {
		before := s.proxy.Count()
		err := atOnce(ctx, n/perTheme, func(ctx context.Context, i int) error {
			_, err := s.typed.CoreV1().Secrets(namespace).Patch(ctx, themeName(i*perTheme), types.MergePatchType,
				fmt.Appendf(nil, `{"metadata":{"annotations":{"bench.example.com/touched":"%d"}}}`, round), metav1.PatchOptions{})
			return err
		})
		if err != nil {
			return err
		}
		return s.asked(ctx, before)
	})
}

// repeat measures rounds of events until the engine rests.
func (s *stage) repeat(
	into *cost, do func(ctx context.Context, v *view, round int) error,
) func(context.Context, *view) error {
	return func(ctx context.Context, v *view) error {
		since, err := s.begin(ctx)
		if err != nil {
			return err
		}
		for round := range scaleRounds {
			if err := do(ctx, v, round); err != nil {
				return err
			}
			if err := s.rests(ctx); err != nil {
				return err
			}
		}
		*into, err = s.end(ctx, since, time.Now())
		return err
	}
}

// idle lets nothing happen. It begins when the engine has collected the garbage of the events
// before.
func (z *scaleSize) idle(s *stage) func(context.Context, *view) error {
	return func(ctx context.Context, _ *view) error {
		if err := pause(ctx, collectedAfter); err != nil {
			return err
		}
		since, err := s.begin(ctx)
		if err != nil {
			return err
		}
		if err := pause(ctx, restedFor); err != nil {
			return err
		}
		z.Idle, err = s.end(ctx, since, time.Now())
		return err
	}
}

// held reads the memory, and the numbers of the cache.
func (z *scaleSize) held(s *stage) func(context.Context, *view) error {
	return func(ctx context.Context, _ *view) (err error) {
		z.memory, err = s.memory(ctx, 0)
		if err != nil {
			return err
		}
		samples, err := s.scrape(ctx)
		if err != nil {
			return err
		}
		z.Objects = int(samples.Sum("hookloop_cache_objects"))
		z.JSON = int64(samples.Sum("hookloop_cache_bytes"))
		s.progress("  %d objects: RSS %s, live heap %s, JSON %s; drift %s, touch %s, related %s", z.Objects, size(z.RSS),
			size(z.Live), size(z.JSON), ms(each(z.Drift.EngineCPU, z.Events)), ms(each(z.Touch.EngineCPU, z.Events)),
			ms(each(z.Related.EngineCPU, z.Events)))
		return nil
	}
}
