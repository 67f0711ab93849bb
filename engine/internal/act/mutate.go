package act

import (
	"fmt"
	"strconv"

	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Mutate calls mutate for an object that a controller in Go creates or updates. It must not change
// the identity of the object.
func Mutate[O metav1.Object](o O, mutate func(O) error) error {
	before, uid := identity(o)
	if err := mutate(o); err != nil {
		return fmt.Errorf("mutate %T %s: %w", o, before, err)
	}
	if now, nowUID := identity(o); now != before || nowUID != uid {
		return fmt.Errorf("mutate %T %s: the object is %s now, expected the same namespace, name and uid", o, before, now)
	}
	return nil
}

// identity returns namespace and name for messages, or the name of a cluster-scoped object, and the
// uid.
func identity(o metav1.Object) (name string, uid types.UID) {
	ref := object.Ref{Namespace: o.GetNamespace(), Name: o.GetName()}
	return strconv.Quote(ref.NamespacedName()), o.GetUID()
}
