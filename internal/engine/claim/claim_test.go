package claim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/claim"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	deleting = `,"deletionTimestamp":"2026-01-01T00:00:00Z"`
	matching = `,"labels":{"app":"web"}`
	other    = `,"labels":{"app":"db"}`
	ours     = `,"ownerReferences":[{"apiVersion":"v1","kind":"P","name":"p","uid":"p-uid","controller":true}]`
	theirs   = `,"ownerReferences":[{"apiVersion":"v1","kind":"Q","name":"q","uid":"q-uid","controller":true}]`
	attached = `,"annotations":{"metacontroller.k8s.io/decorator-controller":"d"}`
	plain    = `,"ownerReferences":[{"apiVersion":"v1","kind":"P","name":"p","uid":"p-uid"}]`
)

func parse(t *testing.T, format string, args ...any) *object.Object {
	t.Helper()
	o, err := object.Decode(fmt.Appendf(nil, format, args...))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func parent(t *testing.T, more string) *object.Object {
	return parse(t, `{"apiVersion":"v1","kind":"P","metadata":{"name":"p","namespace":"shop","uid":"p-uid"%s}}`, more)
}

func TestClassify(t *testing.T) {
	tests := []struct{ name, parent, child, want string }{
		{"owned and selected", "", ours + matching, "owned"},
		{"owned and no longer selected", "", ours + other, "release"},
		{"owned, without labels", "", ours, "release"},
		{"owned, no longer selected and being deleted", "", ours + other + deleting, "owned"},
		{"owned, no longer selected, the parent being deleted", deleting, ours + other, "owned"},
		{"owned and being deleted", "", ours + matching + deleting, "owned"},
		{"an orphan that is selected", "", matching, "adopt"},
		{"an orphan that names the parent as an owner, not as the controller", "", plain + matching, "adopt"},
		{"an orphan that is not selected", "", other, "none"},
		{"an orphan that is being deleted", "", matching + deleting, "none"},
		{"an orphan, the parent being deleted", deleting, matching, "none"},
		{"a decorator's attachment, owned and selected", "", ours + matching + attached, "none"},
		{"a decorator's attachment, owned and not selected", "", ours + attached, "none"},
		{"a decorator's attachment that is an orphan", "", matching + attached, "none"},
		{"another controller's, selected", "", theirs + matching, "none"},
		{"another controller's, not selected", "", theirs + other, "none"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			child := parse(t,
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"shop","uid":"c-uid"%s}}`,
				test.child)
			claims := claim.Classify(claim.Params{
				Parent: parent(t, test.parent), Selector: labels.SelectorFromSet(labels.Set{"app": "web"}),
				Candidates: []*object.Object{child},
			})
			want := map[string]int{test.want: 1}
			got := map[string]int{"owned": len(claims.Owned), "adopt": len(claims.Adopt), "release": len(claims.Release)}
			for list, n := range got {
				if n != want[list] {
					t.Errorf("%d objects in %s, want %d", n, list, want[list])
				}
			}
		})
	}
}

func TestClassifyKeepsTheOrder(t *testing.T) {
	var candidates []*object.Object
	for _, name := range []string{"c", "a", "b"} {
		candidates = append(candidates,
			parse(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q%s}}`, name, matching))
	}
	claims := claim.Classify(claim.Params{Parent: parent(t, ""), Selector: labels.Everything(), Candidates: candidates})
	var got []string
	for _, o := range claims.Adopt {
		got = append(got, o.Name())
	}
	if diff := cmp.Diff([]string{"c", "a", "b"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSelector(t *testing.T) {
	tests := []struct {
		name, spec string
		generate   bool
		want       string
		fault      string
	}{
		{name: "generated", spec: `{}`, generate: true, want: "controller-uid=p-uid"},
		{
			name:     "generated, whatever the spec says",
			spec:     `{"selector":{"matchLabels":{"a":"b"}}}`,
			generate: true,
			want:     "controller-uid=p-uid",
		},
		{name: "labels", spec: `{"selector":{"matchLabels":{"app":"web"}}}`, want: "app=web"},
		{
			name: "expressions",
			want: "app in (db,web),!old",
			spec: `{"selector":{"matchExpressions":[{"key":"app","operator":"In","values":["web","db"]},{"key":"old","operator":"DoesNotExist"}]}}`,
		},
		{name: "no selector", spec: `{"replicas":1}`, fault: "is missing"},
		{name: "a null selector", spec: `{"selector":null}`, fault: "is missing"},
		{name: "no spec object", spec: `"x"`, fault: "is missing"},
		{name: "an empty selector", spec: `{"selector":{}}`, fault: "is empty"},
		{name: "a plain map of labels, as a Service has", spec: `{"selector":{"app":"web"}}`, fault: "is empty"},
		{name: "a text", spec: `{"selector":"app=web"}`, fault: "is no label selector"},
		{
			name:  "an unknown operator",
			spec:  `{"selector":{"matchExpressions":[{"key":"a","operator":"Near"}]}}`,
			fault: "is no valid label selector",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := parse(t, `{"apiVersion":"v1","kind":"P","metadata":{"name":"p","uid":"p-uid"},"spec":%s}`, test.spec)
			got, err := claim.Selector(p, test.generate)
			switch {
			case test.fault != "":
				if err == nil || !strings.HasPrefix(err.Error(), test.fault) {
					t.Fatalf("Selector = %v, %v; want an error that begins with %q", got, err, test.fault)
				}
			case err != nil:
				t.Fatal(err)
			case got.String() != test.want:
				t.Errorf("Selector = %q, want %q", got, test.want)
			}
		})
	}
}
