package hook_test

import (
	"strings"
	"testing"

	"github.com/hookloop/hookloop/sdk/go/hook"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type untagged struct{ Spec struct{ V int } }

type untaggedInside struct {
	Spec []struct {
		Replicas *int
	} `json:"spec"`
}

type miscased struct {
	Metadata metav1.ObjectMeta `json:"metaData"`
}

type tagged struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		V     int
		Later string `json:"later"`
	} `json:"spec"`
	Own     string `json:"-"`
	private string //nolint:unused // it is not decoded
}

// TestFieldsThatDifferInCase are an error if a key of the object matches them: otherwise they would
// stay zero silently.
func TestFieldsThatDifferInCase(t *testing.T) {
	object := func(spec string) hook.Object {
		return hook.Object{
			APIVersion: "v1",
			Kind:       "Web",
			Name:       "w",
			JSON:       []byte(`{"kind":"Web","metadata":{"name":"w","creationTimestamp":null},"spec":` + spec + `}`),
		}
	}
	check := func(name string, err error, want string) {
		t.Helper()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	_, err := hook.Decode[untagged](object(`{"v":1}`))
	check("no tag", err,
		`Web.v1 "w": field Spec of hook_test.untagged stays zero: its JSON name is "Spec", the object has "spec", `+
			`and case counts; expected the tag `+"`json:\"spec\"`")
	_, err = hook.Decode[untaggedInside](object(`[]`))
	check("no tag, and no such key", err, "")
	_, err = hook.Decode[untaggedInside](object(`[{},{"replicas":1}]`))
	check("no tag in an element", err, "field Replicas of struct")
	_, err = hook.Decode[miscased](object(`{}`))
	check("a tag in another case", err, `expected the tag `+"`json:\"metadata\"`")
	_, err = hook.Decode[tagged](object(`{"V":1,"other":2}`))
	check("the exact name", err, "")
	_, err = hook.Decode[tagged](object(`{"v":1,"V":2}`))
	check("both", err, "")
	_, err = hook.Decode[tagged](object(`{"v":1}`))
	check("no tag, in a later object", err, "field V of")
	_, err = hook.Decode[map[string]any](object(`{"V":1}`))
	check("a map", err, "")
	_, err = hook.Decode[appsv1.Deployment](
		object(
			`{"replicas":2,"strategy":{"rollingUpdate":{"maxSurge":1}},"template":{"spec":{"containers":[{"name":"c",` +
				`"image":"i"}]}}}`,
		),
	)
	check("a type of Kubernetes", err, "")
}
