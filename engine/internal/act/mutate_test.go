package act_test

import (
	"errors"
	"testing"

	"github.com/hookloop/hookloop/engine/internal/act"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestMutate refuses changes of an object's identity.
func TestMutate(t *testing.T) {
	const same = ", expected the same namespace, name and uid"
	for _, test := range []struct {
		name   string
		mutate func(*corev1.ConfigMap) error
		want   string
	}{
		{"data", func(c *corev1.ConfigMap) error { c.Data = map[string]string{"a": "b"}; return nil }, ""},
		{"an error", func(*corev1.ConfigMap) error { return errors.New("no price") }, `: no price`},
		{"the name", func(c *corev1.ConfigMap) error { c.Name = "b"; return nil }, `: the object is "shop/b" now` + same},
		{"the namespace", func(c *corev1.ConfigMap) error { c.Namespace = ""; return nil }, `: the object is "a" now` + same},
		{"the uid", func(c *corev1.ConfigMap) error { c.UID = "2"; return nil }, `: the object is "shop/a" now` + same},
	} {
		if test.want != "" {
			test.want = `mutate *v1.ConfigMap "shop/a"` + test.want
		}
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "1"}}
		got := ""
		if err := act.Mutate(o, test.mutate); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
