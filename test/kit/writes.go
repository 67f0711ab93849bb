package kit

import (
	"fmt"
	"time"

	"github.com/hookloop/hookloop/test/cluster"
)

// Mark is the present end of the audit log.
func (k *Kit) Mark() cluster.Mark {
	k.Helper()
	mark, err := k.Cluster.Mark()
	if err != nil {
		k.Fatal(err)
	}
	return mark
}

// Writes are the writes since a mark that concern the kit's namespace or group and were made by neither the kit nor Kubernetes' own
// controllers: the engine's.
func (k *Kit) Writes(since cluster.Mark) []cluster.Write {
	k.Helper()
	all, err := k.Cluster.Writes(since)
	if err != nil {
		k.Fatal(err)
	}
	var own []cluster.Write
	for _, w := range all {
		if (w.Namespace == k.Namespace || w.Group == k.Group) && IsEngine(w) {
			own = append(own, w)
		}
	}
	return own
}

// IsEngine says whether a write was made by an engine: its user agent begins with hookloop/.
func IsEngine(w cluster.Write) bool { return len(w.UserAgent) > 9 && w.UserAgent[:9] == "hookloop/" }

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

// Settled waits until no engine has written for the given time, which is not a claim about speed: it is how long silence must last to count.
// It returns the mark from which the silence lasts.
func (k *Kit) Settled(silence time.Duration) cluster.Mark {
	k.Helper()
	mark, since := k.Mark(), time.Now()
	k.Eventually("no write for "+silence.String(), func() error {
		if writes := k.Writes(mark); len(writes) > 0 {
			mark, since = k.Mark(), time.Now()
			return fmt.Errorf("%d writes, the last: %s", len(writes), writes[len(writes)-1])
		}
		if time.Since(since) < silence {
			return fmt.Errorf("silent for %s", time.Since(since).Round(time.Millisecond))
		}
		return nil
	})
	return mark
}
