package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
)

var resource = object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "P"}, Plural: "ps", HasStatus: true}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	m, err := object.DecodeMap([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestUpsert(t *testing.T) {
	const then = `"observedGeneration":3,"lastTransitionTime":"then"`
	tests := []struct {
		name, status string
		condition    hook.Condition
		want         string // empty if nothing changes
	}{
		{
			"an empty status gets its first condition",
			`{}`,
			hook.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Running", Message: "it runs"},
			`{"conditions":[{"type":"Ready","status":"True","reason":"Running","message":"it ` +
				`runs","observedGeneration":3,"lastTransitionTime":"now"}]}`,
		},
		{
			"all is there already", `{"conditions":[{"type":"Ready","status":"True","reason":"R","message":"m",` + then + `}]}`,
			hook.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "R", Message: "m"}, "",
		},
		{
			"another message keeps the time of the transition",
			`{"conditions":[{"type":"Ready","status":"True","reason":"R","message":"m",` + then + `}]}`,
			hook.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "R", Message: "n"},
			`{"conditions":[{"type":"Ready","status":"True","reason":"R","message":"n",` + then + `}]}`,
		},
		{
			"a new generation keeps it too",
			`{"conditions":[{"type":"Ready","status":"True","reason":"R","message":"m","observedGeneration":2,` +
				`"lastTransitionTime":"then"}]}`,
			hook.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "R", Message: "m"},
			`{"conditions":[{"type":"Ready","status":"True","reason":"R","message":"m",` + then + `}]}`,
		},
		{
			"a condition whose generation the server drops is there already",
			`{"conditions":[{"type":"Ready","status":"True","reason":"R","message":"m"}]}`,
			hook.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "R", Message: "m"}, "",
		},
		{
			"another status is a transition",
			`{"conditions":[{"type":"Ready","status":"True","reason":"R","message":"m",` + then + `}]}`,
			hook.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "R", Message: "m"},
			`{"conditions":[{"type":"Ready","status":"False","reason":"R","message":"m","observedGeneration":3,` +
				`"lastTransitionTime":"now"}]}`,
		},
		{
			"a status that is not known",
			`{}`,
			hook.Condition{Type: "Ready", Status: metav1.ConditionUnknown, Reason: "R", Message: "m"},
			`{"conditions":[{"type":"Ready","status":"Unknown","reason":"R","message":"m","observedGeneration":3,` +
				`"lastTransitionTime":"now"}]}`,
		},
		{
			"all else is kept, whatever it is", `{"phase":"Up","conditions":[7,{"type":"Other","status":"True"}]}`,
			hook.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "R", Message: "m"},
			`{"phase":"Up","conditions":[7,{"type":"Other","status":"True"},` +
				`{"type":"Ready","status":"False","reason":"R","message":"m","observedGeneration":3,"lastTransitionTime":"now"}]}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			status := decode(t, test.status)
			changed, err := upsert(status, test.condition, 3, "now")
			if err != nil || changed != (test.want != "") {
				t.Fatalf("upsert = %v, %v", changed, err)
			}
			want := test.want
			if want == "" {
				want = test.status
			}
			if diff := cmp.Diff(decode(t, want), status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUpsertIntoWhatIsNoList(t *testing.T) {
	changed, err := upsert(decode(t, `{"conditions":{"Ready":true}}`), hook.Condition{Type: "Ready"}, 1, "now")
	if changed || err == nil {
		t.Errorf("upsert = %v, %v, want an error", changed, err)
	}
}

// TestInclude puts a condition into a new status: in the place of a condition of its type, with the
// time of the present one.
func TestInclude(t *testing.T) {
	const ready = `{"type":"Ready","status":"True","reason":"R","message":"m","observedGeneration":3,` +
		`"lastTransitionTime":"then"}`
	now := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	fresh := strings.Replace(ready, "then", "1970-01-01T00:00:00Z", 1)
	for name, c := range map[string]struct{ present, status, want string }{
		"new":      {`{}`, `{"a":1}`, `{"a":1,"conditions":[` + fresh + `]}`},
		"as it is": {`{"conditions":[` + ready + `]}`, `{}`, `{"conditions":[` + ready + `]}`},
		"beside others": {`{"conditions":[` + ready + `,{"type":"Other"}]}`,
			`{"conditions":[` + ready + `,{"type":"Other"}]}`, `{"conditions":[` + ready + `,{"type":"Other"}]}`},
		"in the place of the hook's": {`{"conditions":[` + ready + `]}`, `{"conditions":[{"type":"Ready",` +
			`"status":"False"},{"type":"Other"}]}`, `{"conditions":[` + ready + `,{"type":"Other"}]}`},
		"instead of the hook's first": {`{}`, `{"conditions":[{"type":"Ready","status":"True"},{"type":"Other"}]}`,
			`{"conditions":[{"type":"Other"},` + fresh + `]}`},
	} {
		t.Run(name, func(t *testing.T) {
			status := decode(t, c.status)
			if err := Include(status, now, resource, withStatus(t, c.present),
				hook.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "R", Message: "m"}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(t, c.want), status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConditionsWithoutGeneration has a parent without a status subresource: each write of its
// status changes its generation.
func TestConditionsWithoutGeneration(t *testing.T) {
	without := resource
	without.HasStatus = false
	now := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	status := decode(t, `{}`)
	c := hook.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "R", Message: "m"}
	if err := Include(status, now, without, withStatus(t, `{}`), c); err != nil {
		t.Fatal(err)
	}
	want := `{"conditions":[{"type":"Ready","status":"False","reason":"R","message":"m",` +
		`"lastTransitionTime":"1970-01-01T00:00:00Z"}]}`
	if diff := cmp.Diff(decode(t, want), status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if changed, err := upsert(status, c, Generation(without, withStatus(t, `{}`)), "later"); changed || err != nil {
		t.Errorf("upsert = %v, %v, want no change", changed, err)
	}
}

func TestHasAny(t *testing.T) {
	for status, want := range map[string]bool{
		`{}`: false, `{"conditions":{}}`: false, `{"conditions":[7,{"type":"B"}]}`: true,
		`{"conditions":[{"type":"C"}]}`: false,
	} {
		if got := HasAny(withStatus(t, status), []string{"A", "B"}); got != want {
			t.Errorf("HasAny(%s) = %v, want %v", status, got, want)
		}
	}
}

func TestRemove(t *testing.T) {
	status := decode(t, `{"conditions":[{"type":"A"},7,{"type":"B"}]}`)
	if Remove(status, "C") || Remove(status, "A", "Other") || !Remove(status, "A") {
		t.Error("Remove is wrong about what was there")
	}
	if diff := cmp.Diff(decode(t, `{"conditions":[7,{"type":"B"}]}`), status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if Remove(decode(t, `{"conditions":"none"}`), "A") {
		t.Error("Remove finds a condition in what is no list")
	}
}
