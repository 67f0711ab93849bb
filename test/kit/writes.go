package kit

import (
	"fmt"
	"strings"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/test/cluster"
)

// Mark returns the current end of the audit log. Pass it to [Kit.Writes] to see what was written
// afterwards. A write whose result the test has already seen is before the mark.
func (k *Kit) Mark() cluster.Mark {
	k.Helper()
	mark, err := k.Cluster.Mark()
	if err != nil {
		k.Fatal(err)
	}
	return mark
}

// Writes returns what an engine has written since the mark in the kit's namespace, to the kit's group
// or to its controller. Dry runs do not count.
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

// ChildWrites returns the writes since the mark as lines such as "create configmaps page". It leaves
// out writes to parents (the kit's group) and to the controller. The line of a failed write ends with
// its status code.
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

// NoWrites calls a function, and fails the test if an engine writes meanwhile. The function should
// wait for something that must not cause a write.
func (k *Kit) NoWrites(during func()) {
	k.Helper()
	mark := k.Mark()
	during()
	for _, w := range k.Writes(mark) {
		k.Errorf("a write where none should be: %s", w)
	}
}

// IsEngine reports whether an engine made the write. The user agent of an engine begins with
// hookloop/.
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

// Settled waits until no engine has written for the given time. It returns the mark at which this
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
