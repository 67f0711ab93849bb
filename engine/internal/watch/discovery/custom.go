package discovery

import (
	"strings"
	"sync"

	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/client-go/kubernetes/scheme"
)

// Custom reports whether a resource is a custom one, so that no controller of Kubernetes or of an
// aggregated API writes its status. It is if there is a CustomResourceDefinition of its name. If
// these are not known, because they may not be watched, a resource is taken for a custom one unless
// its group is one of Kubernetes' own.
func (d *Discovery) Custom(r object.Resource) bool {
	if !strings.Contains(r.GVK.Group, ".") { // a CustomResourceDefinition's group has a dot
		return false
	}
	if found, known := d.definitions.has(r.Plural + "." + r.GVK.Group); known {
		return found
	}
	return !scheme.Scheme.IsGroupRegistered(r.GVK.Group)
}

// definitions are the names of the CustomResourceDefinitions. The zero value knows none of them.
type definitions struct {
	mu    sync.RWMutex // guards the fields below
	known bool
	names map[string]bool
}

// follow keeps the names up to date until the returned function is called.
func (d *definitions) follow(h *cache.Handle) (stop func()) {
	d.mu.Lock()
	d.names = map[string]bool{}
	d.mu.Unlock()
	cancel := h.Subscribe(d.take) // returns when it has delivered all that there are
	d.mu.Lock()
	d.known = true
	d.mu.Unlock()
	return func() {
		cancel()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.known = false
	}
}

func (d *definitions) take(e cache.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.New != nil {
		d.names[e.New.Name()] = true
	} else {
		delete(d.names, e.Old.Name())
	}
}

func (d *definitions) has(name string) (found, known bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.names[name], d.known
}
