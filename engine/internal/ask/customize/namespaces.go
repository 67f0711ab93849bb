package customize

import (
	"sync"

	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// namespaceKind is the kind of namespaces.
var namespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}

// namespaceLabels has the labels of namespaces from their events, to find the parents that an event
// concerns. A parent's own sync reads the view instead.
type namespaceLabels struct {
	mu   sync.RWMutex // guards last
	last map[string]labels.Set
}

// set applies an event of a namespace.
func (n *namespaceLabels) set(e cache.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.last == nil {
		n.last = map[string]labels.Set{}
	}
	if e.New == nil {
		delete(n.last, e.Old.Name())
		return
	}
	n.last[e.New.Name()] = labelsOf(e.New)
}

// of returns the labels of a namespace; nil for one that does not exist.
func (n *namespaceLabels) of(namespace string) map[string]string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.last[namespace]
}

// forget drops all labels after the end of the watch. The next watch sets them again.
func (n *namespaceLabels) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = nil
}
