package object

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
)

// metaFields set the fields of the metadata, except labels, annotations and managedFields, to a
// value in JSON. They return false for a value that is not as the API server writes it. They are
// cheaper than API machinery's decoder, which uses reflection, and run for each event of a watch.
var metaFields = map[string]func(m *metav1.ObjectMeta, v jsontext.Value) bool{
	"name":            func(m *metav1.ObjectMeta, v jsontext.Value) bool { return setText(&m.Name, v) },
	"generateName":    func(m *metav1.ObjectMeta, v jsontext.Value) bool { return setText(&m.GenerateName, v) },
	"namespace":       func(m *metav1.ObjectMeta, v jsontext.Value) bool { return setShared(&m.Namespace, v) },
	"selfLink":        func(*metav1.ObjectMeta, jsontext.Value) bool { return false }, // no API server sets it
	"uid":             func(m *metav1.ObjectMeta, v jsontext.Value) bool { return setText(&m.UID, v) },
	"resourceVersion": func(m *metav1.ObjectMeta, v jsontext.Value) bool { return setText(&m.ResourceVersion, v) },
	"generation":      func(m *metav1.ObjectMeta, v jsontext.Value) bool { return setNumber(&m.Generation, v) },
	"creationTimestamp": func(m *metav1.ObjectMeta, v jsontext.Value) bool {
		return v.Kind() == 'n' || setTime(&m.CreationTimestamp, v)
	},
	"deletionTimestamp": func(m *metav1.ObjectMeta, v jsontext.Value) bool {
		m.DeletionTimestamp = &metav1.Time{}
		return setTime(m.DeletionTimestamp, v)
	},
	"deletionGracePeriodSeconds": func(m *metav1.ObjectMeta, v jsontext.Value) bool {
		m.DeletionGracePeriodSeconds = new(int64)
		return setNumber(m.DeletionGracePeriodSeconds, v)
	},
	"ownerReferences": func(m *metav1.ObjectMeta, v jsontext.Value) bool {
		references, ok := sharedOwners.get(v, decodeOwners)
		m.OwnerReferences = references
		return ok
	},
	"finalizers": func(m *metav1.ObjectMeta, v jsontext.Value) bool {
		return kjson.UnmarshalCaseSensitivePreserveInts(v, &m.Finalizers) == nil
	},
}

func setText[T string | types.UID](text *T, value jsontext.Value) bool {
	if value.Kind() != '"' {
		return false
	}
	*text = T(unquote(value))
	return true
}

func setShared(text *string, value jsontext.Value) bool {
	if value.Kind() != '"' {
		return false
	}
	*text = shared(value)
	return true
}

func decodeOwners(text []byte) (references []metav1.OwnerReference, ok bool) {
	err := kjson.UnmarshalCaseSensitivePreserveInts(text, &references)
	return references, err == nil
}

func setNumber(n *int64, value jsontext.Value) bool {
	parsed, err := strconv.ParseInt(string(value), 10, 64)
	*n = parsed
	return err == nil
}

func setTime(t *metav1.Time, value jsontext.Value) bool {
	if value.Kind() != '"' {
		return false
	}
	parsed, err := time.Parse(time.RFC3339, unquote(value))
	t.Time = parsed.Local()
	return err == nil
}
