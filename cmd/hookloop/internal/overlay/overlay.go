// Package overlay lets an engine run controllers from files, on a cluster that need not have
// Hookloop's CRDs. Make an [Overlay], give the engine a transport from its Wrap, and call Replace
// with the controllers.
//
// The transport answers requests about controllers from memory and sends all others to the API
// server. The controllers are kept in package memapi with the embedded CRDs, so they are validated
// and defaulted and have a status, as in a cluster. They are never written to the cluster.
// ControllerRevisions do go to the cluster, because a rollout must survive a restart of the
// process. An Overlay is safe for concurrent use.
package overlay

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/memapi"
	"github.com/hookloop/hookloop/manifests"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// history is how many events are kept for each kind of controller.
const history = 1000

// Overlay holds controllers in memory.
type Overlay struct {
	memory *memapi.Server
	client dynamic.Interface
}

// New makes an Overlay without controllers.
func New() (*Overlay, error) {
	documents, err := manifests.CRDs()
	if err != nil {
		return nil, err
	}
	options := memapi.Options{History: history}
	for _, data := range documents {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(data, crd); err != nil {
			return nil, fmt.Errorf("embedded CRD: %w", err)
		}
		if isController(crd.Spec.Names.Plural) {
			options.CRDs = append(options.CRDs, crd)
		}
	}
	memory, err := memapi.New(options)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(memory.Config())
	if err != nil {
		return nil, err
	}
	return &Overlay{memory, client}, nil
}

// Close ends all watches of controllers.
func (o *Overlay) Close() { o.memory.Close() }

// isController returns true if a resource of Hookloop's group declares controllers.
func isController(plural string) bool {
	return slices.ContainsFunc(hook.Descriptors(), func(k hook.Descriptor) bool { return k.Plural == plural })
}

// Wrap returns a transport for a client that should see the overlay. next reaches the API server.
func (o *Overlay) Wrap(next http.RoundTripper) http.RoundTripper { return &transport{o, next} }

// transport answers requests from the overlay or from the API server.
type transport struct {
	overlay *Overlay
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group := v1alpha1.GroupVersion.Group
	switch {
	case len(parts) > 3 && parts[0] == "apis" && parts[1] == group && isController(resourceIn(parts)):
		return t.overlay.memory.RoundTrip(r)
	case r.Method != http.MethodGet || parts[0] != "apis":
		return t.next.RoundTrip(r)
	case len(parts) == 1:
		return t.groups(r)
	case len(parts) == 2 && parts[1] == group:
		return t.overlay.memory.RoundTrip(r)
	case len(parts) == 3 && parts[1] == group && parts[2] == v1alpha1.GroupVersion.Version:
		return t.resources(r)
	}
	return t.next.RoundTrip(r)
}

// resourceIn returns the resource of a path. Controllers are cluster-scoped.
func resourceIn(parts []string) string { return parts[3] }
