package object

import (
	"fmt"
	"strings"
	"testing"
)

// TestSharedPlacesAreCounted has more namespaces than places are shared, and one with a name that
// is too long to be shared.
func TestSharedPlacesAreCounted(t *testing.T) {
	decode := func(namespace string) *Object {
		const text = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":%q}}`
		o, err := Decode(fmt.Appendf(nil, text, namespace))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for i := range 3 * internSlots {
		decode(fmt.Sprint("namespace-", i))
	}
	counted := SharedBytes() - sharedLabels.bytes.Load() - sharedOwners.bytes.Load() - sharedTexts.bytes.Load()
	var sum int64
	for i := range sharedPlaces {
		if p := sharedPlaces[i].Load(); p != nil {
			sum += int64(p.size())
		}
	}
	if counted != sum || sum == 0 {
		t.Errorf("%d bytes are counted, want %d", counted, sum)
	}
	long := strings.Repeat("x", maxInterned)
	if o := decode(long); o.Namespace() != long || decode(long).place == o.place {
		t.Error("a long place is shared, or lost")
	}
}
