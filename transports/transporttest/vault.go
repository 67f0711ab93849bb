package transporttest

import (
	"context"
	"sync"

	"github.com/hookloop/hookloop/engine/hook"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Vault holds Secrets and ConfigMaps for a hook's Lookup. It is safe for concurrent use.
type Vault struct {
	// Annotations are the annotations of all objects.
	Annotations map[string]string

	mu      sync.Mutex // guards the fields below
	objects map[string]map[string][]byte
	fault   error
	reads   int
}

// Put stores data in an object, such as Secret/hooks/token.
func (v *Vault) Put(object string, data map[string]string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.objects == nil {
		v.objects = map[string]map[string][]byte{}
	}
	v.objects[object] = map[string][]byte{}
	for key, value := range data {
		v.objects[object][key] = []byte(value)
	}
}

// Delete removes an object.
func (v *Vault) Delete(object string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.objects, object)
}

// Fail makes every look-up return an error; nil ends that.
func (v *Vault) Fail(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.fault = err
}

// Reads returns the number of look-ups.
func (v *Vault) Reads() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.reads
}

// Lookup is a hook.Lookup.
func (v *Vault) Lookup(_ context.Context, kind, namespace, name string) (*hook.Source, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reads++
	if v.fault != nil {
		return nil, v.fault
	}
	data, ok := v.objects[kind+"/"+namespace+"/"+name]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name)
	}
	return &hook.Source{Data: data, Annotations: v.Annotations}, nil
}
