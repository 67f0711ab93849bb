package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookloop/hookloop/test/lagproxy"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// finding is what a fault shows about a program.
type finding struct {
	Fault string `json:"fault"`
	// Right reports that the program did nothing wrong, neither for a while nor in the end.
	Right bool `json:"right"`
	// Text has the counts.
	Text string `json:"text"`
}

// fault is one fault of the run. Its finding is an error only if the program does not recover.
type fault struct {
	name string
	run  func(*stage, context.Context) (right bool, text string, err error)
}

// faults is the fault run. Every fault begins and ends with a program that runs, and all Websites
// right.
var faults = []fault{
	{"killed and restarted; nothing has changed", (*stage).restartQuiet},
	{"changes while it is down", (*stage).restartChanges},
	{"killed during an update of all Websites", (*stage).restartBurst},
	{"pointer moved: the old theme changes, then the new one", (*stage).pointerMoved},
	{"pointer moved while it is down", (*stage).pointerMovedDown},
	{"events of children lag; then a Website changes", (*stage).childrenLag},
	{"events of Websites lag; the pointer moves, and the old theme changes", (*stage).websitesLag},
	{"events of Websites lag; Websites are deleted", (*stage).deletionsLag},
	{"lost lease: the leader is paused, and continues when another one leads", (*stage).lostLease},
}

// faults runs all faults.
func (s *stage) faults(ctx context.Context) ([]finding, error) {
	var all []finding
	for _, f := range faults {
		right, text, err := f.run(s, ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		s.progress("  %s: %s", f.name, text)
		all = append(all, finding{Fault: f.name, Right: right, Text: text})
	}
	return all, nil
}

// count is the number of Websites that are not deleted, nor about to be.
func (s *stage) count() int {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	n := 0
	for name, site := range s.world.sites {
		version, awaited := s.world.awaited[objectID{websites, name}]
		if deleted := awaited && version == 0; !deleted && site.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// verdict is the finding of a fault after which there may be no such write.
func verdict(accepted, refused int, what string) (bool, string) {
	if accepted+refused == 0 {
		return true, "right"
	}
	return false, fmt.Sprintf("%s: %s", what, counts(accepted, refused))
}

func counts(accepted, refused int) string {
	if refused == 0 {
		return fmt.Sprintf("%d writes", accepted)
	}
	return fmt.Sprintf("%d writes, and %d refused ones", accepted, refused)
}

func (s *stage) restartQuiet(ctx context.Context) (bool, string, error) {
	mark, err := s.cluster.Mark()
	if err != nil {
		return false, "", err
	}
	if err := s.restart(ctx, nil); err != nil {
		return false, "", err
	}
	if err := s.rests(ctx); err != nil {
		return false, "", err
	}
	accepted, refused, err := s.writes(mark, s.program.name)
	right, text := verdict(accepted, refused, "it writes although nothing has changed")
	return right, text, err
}

// restartChanges deletes a child, changes another one, deletes and creates a Website, and edits the
// theme while the program is down.
func (s *stage) restartChanges(ctx context.Context) (bool, string, error) {
	sites, err := s.group(ctx, "down")
	if err != nil {
		return false, "", err
	}
	if err := s.killAll(); err != nil {
		return false, "", err
	}
	n := s.count()
	err = errors.Join(
		s.remove(ctx, services, sites[0]),
		s.edit(ctx, configMaps, sites[1], object{"data": object{"index.html": "a client's"}}),
		s.remove(ctx, websites, sites[2]),
		s.createSites(ctx, []string{"down-new"}, "down-theme"),
		s.editTheme(ctx, "down-theme"),
	)
	if err != nil {
		return false, "", err
	}
	return s.recovers(ctx, n, s.startAll(ctx, nil))
}

// recovers waits until n Websites are right.
func (s *stage) recovers(ctx context.Context, n int, err error) (bool, string, error) {
	if err != nil {
		return false, "", err
	}
	_, err = s.world.await(ctx, n)
	return true, "right", err
}

// group creates a few Websites with a theme of their own, and waits until they are right.
func (s *stage) group(ctx context.Context, prefix string) ([]string, error) {
	sites := names(prefix, s.few)
	n := s.count() + len(sites)
	if err := s.createTheme(ctx, prefix+"-theme"); err != nil {
		return nil, err
	}
	if err := s.createSites(ctx, sites, prefix+"-theme"); err != nil {
		return nil, err
	}
	if _, err := s.world.await(ctx, n); err != nil {
		return nil, err
	}
	return sites, s.rests(ctx)
}

// restartBurst kills the program when it has written some of the pages that an edit of the shared
// theme changes.
func (s *stage) restartBurst(ctx context.Context) (bool, string, error) {
	mark, err := s.cluster.Mark()
	if err != nil {
		return false, "", err
	}
	if err := s.editTheme(ctx, theme); err != nil {
		return false, "", err
	}
	err = s.world.until(ctx, "a tenth of the pages has changed", func() bool {
		return len(s.world.awaited) == 0 && len(s.world.wrong) <= s.sites*9/10
	})
	if err != nil {
		return false, "", err
	}
	if err := s.restart(ctx, nil); err != nil {
		return false, "", err
	}
	if _, err := s.world.await(ctx, s.count()); err != nil {
		return false, "", err
	}
	if err := s.rests(ctx); err != nil {
		return false, "", err
	}
	accepted, refused, err := s.writes(mark, s.program.name)
	// A page and a status for each Website.
	right, text := verdict(max(0, accepted-2*s.sites), refused, "right in the end, with needless requests")
	return right, text, err
}

func (s *stage) pointerMoved(ctx context.Context) (bool, string, error) {
	return s.movePointer(ctx, "moved", func(move func() error) error { return move() })
}

func (s *stage) pointerMovedDown(ctx context.Context) (bool, string, error) {
	return s.movePointer(ctx, "moveddown", func(move func() error) error {
		if err := s.killAll(); err != nil {
			return err
		}
		if err := move(); err != nil {
			return err
		}
		return s.startAll(ctx, nil)
	})
}

// movePointer moves Websites from a theme to another one. Then an edit of the old theme must write
// nothing, and an edit of the new theme must change them.
func (s *stage) movePointer(ctx context.Context, prefix string, around func(func() error) error) (bool, string, error) {
	sites, err := s.group(ctx, prefix)
	if err != nil {
		return false, "", err
	}
	other := prefix + "-other"
	if err := s.createTheme(ctx, other); err != nil {
		return false, "", err
	}
	err = around(func() error { return s.editSites(ctx, sites, object{"theme": other}) })
	if err != nil {
		return false, "", err
	}
	if _, err := s.world.await(ctx, s.count()); err != nil {
		return false, "", err
	}
	if err := s.rests(ctx); err != nil {
		return false, "", err
	}
	c, err := s.measure(ctx, func() (time.Time, error) { return time.Now(), s.editTheme(ctx, prefix+"-theme") })
	if err != nil {
		return false, "", err
	}
	if err := s.editTheme(ctx, other); err != nil {
		return false, "", err
	}
	if _, err := s.world.await(ctx, s.count()); err != nil {
		return false, "", fmt.Errorf("the new theme changes: %w", err)
	}
	right, text := verdict(c.Writes, c.Refused, "the old theme causes")
	if right && c.Syncs > 0 {
		text += fmt.Sprintf(", with %d syncs for nothing", c.Syncs)
	}
	return right, text, nil
}

// lagging restarts the program behind a proxy, runs do while the events of resources lag for a
// while, and waits until all Websites are right. It returns the writes during the lag and after it.
func (s *stage) lagging(
	ctx context.Context, resources []string, do func() error,
	count func(since func(resources ...string) (int, int, error)) error,
) (err error) {
	config, err := s.cluster.User(s.program.name, "system:masters")
	if err != nil {
		return err
	}
	proxy, err := lagproxy.Start(config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, proxy.Close()) }()
	if err := s.restart(ctx, proxy.Config()); err != nil {
		return err
	}
	if err := s.rests(ctx); err != nil {
		return err
	}
	mark, err := s.cluster.Mark()
	if err != nil {
		return err
	}
	proxy.Hold(resources...)
	if err := do(); err != nil {
		return err
	}
	hold := time.NewTimer(s.lag)
	defer hold.Stop()
	select {
	case <-hold.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	err = count(func(resources ...string) (int, int, error) {
		return s.writes(mark, s.program.name, resources...)
	})
	if err != nil {
		return err
	}
	proxy.Release()
	if _, err := s.world.await(ctx, s.count()); err != nil {
		return err
	}
	return s.restart(ctx, nil)
}

// childrenLag creates Websites, and edits them when the first one has a child, while the program
// has no event of the children. Its caches show fewer objects than it has written.
func (s *stage) childrenLag(ctx context.Context) (bool, string, error) {
	n := s.count() + s.few
	sites := names("lag", s.few)
	children := []string{"deployments", "services", "configmaps"}
	var refused int
	err := s.lagging(ctx, children, func() error {
		if err := s.createSites(ctx, sites, theme); err != nil {
			return err
		}
		err := s.world.until(ctx, "a Website has a child", func() bool {
			for _, name := range sites {
				if s.world.deployments[name] != nil || s.world.services[name] != nil || s.world.configMaps[name] != nil {
					return len(s.world.sites) == n
				}
			}
			return false
		})
		if err != nil {
			return err
		}
		return s.editSites(ctx, sites, object{"image": "nginx:1.28"})
	}, func(since func(...string) (int, int, error)) (err error) {
		_, refused, err = since(children...)
		return err
	})
	if refused > 0 {
		return false, fmt.Sprintf("it creates what exists: %d refused writes in %s", refused, s.lag), err
	}
	return true, "right", err
}

// websitesLag moves Websites to another theme and edits the old one, while the program has no event
// of the Websites.
func (s *stage) websitesLag(ctx context.Context) (bool, string, error) {
	sites, err := s.group(ctx, "stale")
	if err != nil {
		return false, "", err
	}
	if err := s.createTheme(ctx, "stale-other"); err != nil {
		return false, "", err
	}
	var accepted, refused int
	err = s.lagging(ctx, []string{"websites"}, func() error {
		if err := s.editSites(ctx, sites, object{"theme": "stale-other"}); err != nil {
			return err
		}
		return s.editTheme(ctx, "stale-theme")
	}, func(since func(...string) (int, int, error)) (err error) {
		accepted, refused, err = since()
		return err
	})
	right, text := verdict(accepted, refused, "it writes the old theme, until it sees the Websites")
	return right, text, err
}

// deletionsLag deletes Websites, while the program has no event of the Websites. The children are
// deleted by the garbage collector.
func (s *stage) deletionsLag(ctx context.Context) (bool, string, error) {
	sites, err := s.group(ctx, "gone")
	if err != nil {
		return false, "", err
	}
	var accepted, refused int
	err = s.lagging(ctx, []string{"websites"}, func() error {
		return s.atOnce(sites, func(name string) error {
			background := metav1.DeletePropagationBackground
			s.world.deletes(websites, name)
			return s.client.Resource(websites).Namespace(namespace).Delete(ctx, name,
				metav1.DeleteOptions{PropagationPolicy: &background})
		})
	}, func(since func(...string) (int, int, error)) (err error) {
		accepted, refused, err = since()
		return err
	})
	right, text := verdict(accepted, refused, "it writes children of Websites that are gone")
	return right, text, err
}
