package mapping

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
)

// MapKey identifies an input, and with it a part of a parent: the part of a hook.Key, and the
// mapKey of requests. It has neither UID nor version, so that an input that is restored from a
// backup finds its outputs again.
type MapKey struct{ Group, Kind, Namespace, Name string }

// KeyOf returns the map key of an input.
func KeyOf(o *object.Object) MapKey {
	return MapKey{Group: o.GVK().Group, Kind: o.GVK().Kind, Namespace: o.Namespace(), Name: o.Name()}
}

// String returns Kind.group/namespace/name. The core group and the namespace of a cluster-scoped
// input are left out: ConfigMap/shop/prices, Namespace/shop.
func (k MapKey) String() string {
	kind := k.Kind
	if k.Group != "" {
		kind += "." + k.Group
	}
	if k.Namespace == "" {
		return kind + "/" + k.Name
	}
	return kind + "/" + k.Namespace + "/" + k.Name
}

// hashBytes is the number of bytes of the hash of a map key.
const hashBytes = 16

// Hash returns the hash of a map key as text, which is a valid value of a label.
func Hash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:hashBytes])
}

// isHash reports whether a text has the form of a hash.
func isHash(text string) bool {
	if len(text) != 2*hashBytes {
		return false
	}
	return strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') }) < 0
}

// ParseMapKey parses the String of a map key. Its result has the same String.
func ParseMapKey(text string) (MapKey, error) {
	names := strings.Split(text, "/")
	if len(names) < 2 || len(names) > 3 {
		return MapKey{}, fmt.Errorf("map key %q: expected KIND.GROUP/NAMESPACE/NAME, or KIND.GROUP/NAME", text)
	}
	key := MapKey{Name: names[len(names)-1]}
	var grouped bool
	key.Kind, key.Group, grouped = strings.Cut(names[0], ".")
	if !validKind(key.Kind) {
		return MapKey{}, fmt.Errorf("map key %q: kind %q: expected letters, digits and hyphens", text, key.Kind)
	}
	if faults := validation.IsDNS1123Subdomain(key.Group); grouped && len(faults) > 0 {
		return MapKey{}, fmt.Errorf("map key %q: group %q: %s", text, key.Group, faults[0])
	}
	if faults := validName(key.Name); len(faults) > 0 {
		return MapKey{}, fmt.Errorf("map key %q: name %q: %s", text, key.Name, faults[0])
	}
	if len(names) == 2 {
		return key, nil
	}
	key.Namespace = names[1]
	if faults := validation.IsDNS1123Label(key.Namespace); len(faults) > 0 {
		return MapKey{}, fmt.Errorf("map key %q: namespace %q: %s", text, key.Namespace, faults[0])
	}
	return key, nil
}

// validKind has the API server's rule for the kinds of custom resources.
func validKind(kind string) bool {
	return len(validation.IsDNS1035Label(strings.ToLower(kind))) == 0
}

// validName returns the faults of a name. It has the rule of the API server for all kinds, because
// names of some kinds, such as ClusterRole, are no DNS names.
func validName(name string) []string {
	if name == "" {
		return []string{"expected a name"}
	}
	return content.IsPathSegmentName(name)
}
