package kit

import (
	"fmt"
	"strings"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/test/cluster"
)

// Mark returns the present end of the audit log. Writes of objects that are seen before it do not
// count after it.
func (k *Kit) Mark() cluster.Mark {
	k.Helper()
	mark, err := k.Cluster.Mark()
	if err != nil {
		k.Fatal(err)
	}
	return mark
}

// Writes returns the engine's writes since a mark that concern the kit's namespace, group or
// controller. Dry runs do not count.
func (k *Kit) Writes(since cluster.Mark) []cluster.Write {
	k.Helper()
	all, err := k.Cluster.Writes(since)
	if err != nil {
		k.Fatal(err)
	}
	var own []cluster.Write
	for _, w := range all {
		if (w.Namespace == k.Namespace || w.Group == k.Group || w.Name == k.Name) && IsEngine(w) && !w.DryRun {
			own = append(own, w)
		}
	}
	return own
}

// ChildWrites returns the writes since a mark that concern neither the parents (the kit's group)
// nor the controller, one line each: "create configmaps page". A failed write ends with its status
// code.
func (k *Kit) ChildWrites(since cluster.Mark) []string {
	k.Helper()
	lines := []string{}
	for _, w := range k.Writes(since) {
		if w.Group == k.Group || w.Group == v1alpha1.GroupVersion.Group {
			continue
		}
		line := w.Verb + " " + w.Resource + " " + w.Name
		if w.Code >= 300 {
			line += fmt.Sprintf(" %d", w.Code)
		}
		lines = append(lines, line)
	}
	return lines
}

// NoWrites fails the test for each of the engine's writes while the given function runs. The
// function waits for an event that must not cause a write.
func (k *Kit) NoWrites(during func()) {
	k.Helper()
	mark := k.Mark()
	during()
	for _, w := range k.Writes(mark) {
		k.Errorf("a write where none should be: %s", w)
	}
}

// IsEngine reports whether a write was made by an engine: its user agent begins with hookloop/.
func IsEngine(w cluster.Write) bool { return strings.HasPrefix(w.UserAgent, "hookloop/") }

// Count counts the writes of one verb to one resource ("deployments", or "things/status").
func Count(writes []cluster.Write, verb, resource string) int {
	n := 0
	for _, w := range writes {
		name := w.Resource
		if w.Subresource != "" {
			name += "/" + w.Subresource
		}
		if w.Verb == verb && name == resource {
			n++
		}
	}
	return n
}

// Settled waits until no engine has written for the given time, and returns the mark at which this
// silence began.
func (k *Kit) Settled(silence time.Duration) cluster.Mark {
	k.Helper()
	mark := k.Mark()
	since := time.Now()
	k.Eventually("no write for "+silence.String(), func() error {
		if writes := k.Writes(mark); len(writes) > 0 {
			mark = k.Mark()
			since = time.Now()
			return fmt.Errorf("%d writes, the last: %s", len(writes), writes[len(writes)-1])
		}
		if time.Since(since) < silence {
			return fmt.Errorf("silent for %s", time.Since(since).Round(time.Millisecond))
		}
		return nil
	})
	return mark
}
