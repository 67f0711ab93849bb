package rbac

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
)

// reference is a Secret or ConfigMap of a hook.
type reference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// credentials adds the rights on the Secrets and ConfigMaps that hooks and endpointConfigs name.
// The engine reads each by its name.
func (a *Access) credentials(c *manifest.Controller) {
	for _, field := range []string{"hooks", "endpointConfigs"} {
		if value, found := c.Field("spec", field); found {
			a.references(value, title(c))
		}
	}
}

// transports notes the transports that another program adds. Secrets and ConfigMaps to which their
// configuration refers as Hookloop's own transports do (secretRef, configMapRef) are known.
func (a *Access) transports(c *manifest.Controller) {
	hooks := c.Hooks()
	for _, op := range c.Kind().Operations {
		h := hooks[op]
		if h != nil && h.Transport != nil {
			a.note("%s uses the transport %q that another program adds: what it reads beside secretRef and "+
				"configMapRef in its config is not known", title(c), h.Transport.Name)
		}
	}
}

// references adds the rights on the references anywhere in a JSON value.
func (a *Access) references(value json.RawMessage, of string) {
	var fields map[string]json.RawMessage
	var items []json.RawMessage
	if json.Unmarshal(value, &fields) != nil {
		_ = json.Unmarshal(value, &items) // a scalar has no references
	}
	for _, item := range items {
		a.references(item, of)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		field := fields[name]
		resource := map[string]string{"secretRef": "secrets", "configMapRef": "configmaps"}[name]
		var r reference
		if resource == "" || json.Unmarshal(field, &r) != nil {
			a.references(field, of)
			continue
		}
		a.add(&grant{
			part: credentials, namespace: r.Namespace, resource: resource, names: []string{r.Name},
			verbs: []string{"get"}, why: []string{"credentials of the hooks of " + of},
		})
	}
}
