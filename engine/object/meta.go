package object

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// metadata holds the fields of an object's metadata that Object keeps.
type metadata struct {
	name, uid, resourceVersion []byte
	namespace                  string
	generation                 int64
	deleting                   bool
	labels, annotations        map[string]string
	owners                     *[]metav1.OwnerReference
	finalizers                 []string
}

// metadataOf converts metadata that apimachinery has decoded.
func metadataOf(m *metav1.ObjectMeta) metadata {
	of := metadata{
		name: []byte(m.Name), uid: []byte(m.UID), resourceVersion: []byte(m.ResourceVersion), namespace: m.Namespace,
		generation: m.Generation, deleting: m.DeletionTimestamp != nil,
		labels: m.Labels, annotations: m.Annotations, finalizers: m.Finalizers,
	}
	if m.OwnerReferences != nil {
		of.owners = &m.OwnerReferences
	}
	return of
}

// metaFields has a setter for each field of the metadata except labels, annotations and
// managedFields. A setter returns false for a value that the API server would not write; the caller
// then falls back to apimachinery's decoder. The setters run for every watch event and avoid its
// reflection.
var metaFields = map[string]func(m *metadata, v jsontext.Value) bool{
	"name":            func(m *metadata, v jsontext.Value) bool { return setText(&m.name, v) },
	"generateName":    func(_ *metadata, v jsontext.Value) bool { return v.Kind() == '"' },
	"namespace":       func(m *metadata, v jsontext.Value) bool { return setShared(&m.namespace, v) },
	"selfLink":        func(*metadata, jsontext.Value) bool { return false }, // no API server sets it
	"uid":             func(m *metadata, v jsontext.Value) bool { return setText(&m.uid, v) },
	"resourceVersion": func(m *metadata, v jsontext.Value) bool { return setText(&m.resourceVersion, v) },
	"generation": func(m *metadata, v jsontext.Value) bool {
		n, err := strconv.ParseInt(string(v), 10, 64)
		m.generation = n
		return err == nil
	},
	"creationTimestamp": func(_ *metadata, v jsontext.Value) bool { return v.Kind() == 'n' || isTime(v) },
	"deletionTimestamp": func(m *metadata, v jsontext.Value) bool {
		m.deleting = true
		return isTime(v)
	},
	"deletionGracePeriodSeconds": func(_ *metadata, v jsontext.Value) bool {
		_, err := strconv.ParseInt(string(v), 10, 64)
		return err == nil
	},
	"ownerReferences": func(m *metadata, v jsontext.Value) bool {
		references, ok := sharedOwners.get(v, decodeOwners)
		m.owners = references
		return ok
	},
	"finalizers": func(m *metadata, v jsontext.Value) bool {
		return kjson.UnmarshalCaseSensitivePreserveInts(v, &m.finalizers) == nil
	},
}

func setText(text *[]byte, value jsontext.Value) bool {
	if value.Kind() != '"' {
		return false
	}
	*text = append((*text)[:0], textOf(value)...)
	return true
}

func setShared(text *string, value jsontext.Value) bool {
	if value.Kind() != '"' {
		return false
	}
	*text = shared(value)
	return true
}

func decodeOwners(text []byte) (*[]metav1.OwnerReference, bool) {
	var references []metav1.OwnerReference
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &references); err != nil {
		return nil, false
	}
	return &references, true
}

func isTime(value jsontext.Value) bool {
	if value.Kind() != '"' {
		return false
	}
	_, err := time.Parse(time.RFC3339, string(textOf(value)))
	return err == nil
}
