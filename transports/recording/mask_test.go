package recording

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

// password needs escapes in JSON, in YAML, in a URL, and other digits in the base64 of URLs.
const password = "hunter2\n\"?>~ü&%"

// secretObject is a Secret with the password, and its annotation of kubectl apply.
func secretObject(t *testing.T) *object.Object {
	t.Helper()
	data := base64.StdEncoding.EncodeToString([]byte(password))
	applied := `{"apiVersion":"v1","kind":"Secret","data":{"password":"` + data + `","pin":"MTIz"}}`
	return objectOf(t, map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{
			"namespace": "shop", "name": "login",
			"annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": applied},
		},
		"data": map[string]any{"password": data, "pin": "MTIz"},
	})
}

func objectOf(t *testing.T, m map[string]any) *object.Object {
	t.Helper()
	o, err := object.FromMap(m)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// asking is a question about a parent with a spec, with a Secret among its children or its related
// objects.
func asking(t *testing.T, spec any, children, related []*object.Object) *hook.Question {
	t.Helper()
	q := question(t)
	q.Parent = objectOf(t, map[string]any{
		"apiVersion": "demo/v1", "kind": "Web", "metadata": map[string]any{"namespace": "shop", "name": "a"}, "spec": spec,
	})
	q.Children = []hook.Group{{Resource: secrets, Objects: children}, {Resource: configs}}
	q.Related = []hook.RelatedGroup{{Group: hook.Group{Resource: secrets, Objects: related}}}
	return q
}

func jsonOf(t *testing.T, v any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestEachPlaceOfAValue has a value of a Secret in one place after the other. No form of it may be
// in the recording.
func TestEachPlaceOfAValue(t *testing.T) {
	secret := []*object.Object{secretObject(t)}
	data := func(value any) any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c"},
			"data": map[string]any{"key": value}}
	}
	child := func(v any) *hook.Answer { return &hook.Answer{Children: []json.RawMessage{jsonOf(t, v)}} }
	desired := map[string]any{"kind": "Secret", "apiVersion": "v1", "metadata": map[string]any{"name": "login"}}
	with := func(field string, value any) map[string]any {
		out := map[string]any{field: map[string]any{"password": value}}
		for key, v := range desired {
			out[key] = v
		}
		return out
	}
	noVersion := with("stringData", password)
	delete(noVersion, "apiVersion")
	plain := asking(t, nil, nil, nil)
	observed := func(spec any) *hook.Question { return asking(t, spec, secret, nil) }
	text := password
	none := &hook.Answer{}
	in64 := base64.StdEncoding.EncodeToString([]byte(password))
	inURL := base64.URLEncoding.EncodeToString([]byte(password))
	inText := string(jsonOf(t, map[string]any{"a": password}))
	conditions := []hook.Condition{{Message: password}}
	notes := map[string]*string{"a": &text}
	failed := &hook.Error{Kind: hook.Failed, Err: errors.New("got " + password)}
	shown := observed(nil)
	for name, e := range map[string]exchange{
		"an observed child":           {question: shown, answer: none},
		"a related object":            {question: asking(t, nil, nil, secret), answer: none},
		"the parent's spec":           {question: observed(map[string]any{"password": password}), answer: none},
		"a key of the parent":         {question: observed(map[string]any{password: true}), answer: none},
		"JSON in a text":              {question: observed(inText), answer: none},
		"a URL":                       {question: observed("postgres://app:" + url.QueryEscape(password)), answer: none},
		"a path":                      {question: observed("http://db/" + url.PathEscape(password)), answer: none},
		"base64 for URLs":             {question: observed(inURL), answer: none},
		"data of a desired Secret":    {question: plain, answer: child(with("data", in64))},
		"stringData of one":           {question: plain, answer: child(with("stringData", password))},
		"a Secret without apiVersion": {question: plain, answer: child(noVersion)},
		"a desired ConfigMap":         {question: shown, answer: child(data(password))},
		"the status":                  {question: shown, answer: &hook.Answer{Status: jsonOf(t, []string{password})}},
		"a condition":                 {question: shown, answer: &hook.Answer{Conditions: conditions}},
		"an event":                    {question: shown, answer: &hook.Answer{Events: []hook.Event{{Message: password}}}},
		"a result":                    {question: shown, answer: &hook.Answer{Results: []hook.Result{{Message: password}}}},
		"an annotation":               {question: shown, answer: &hook.Answer{Annotations: notes}},
		"the error":                   {question: shown, err: failed},
	} {
		recorded, err := encode(e)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := string(jsonOf(t, recorded))
		for _, form := range []string{
			"hunter2", "MTIz", base64.StdEncoding.EncodeToString([]byte("hunter2"))[:8], url.QueryEscape(password),
		} {
			if strings.Contains(got, form) {
				t.Errorf("%s: the recording has %q:\n%s", name, form, got)
			}
		}
		if recorded.Masked == 0 {
			t.Errorf("%s: nothing is masked", name)
		}
	}
}

// TestUnreadableGroup masks the error of a group of related objects.
func TestUnreadableGroup(t *testing.T) {
	q := asking(t, nil, []*object.Object{secretObject(t)}, nil)
	q.Related[0].Err = errors.New("no " + password)
	recorded, err := New(q, &hook.Answer{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := recorded.Related[0].Error; got != "no masked-1" {
		t.Errorf("got %q, want a mask", got)
	}
}

// TestNumberInASecret has an answer with a number in place of a text, which the engine rejects.
func TestNumberInASecret(t *testing.T) {
	recorded, err := New(asking(t, nil, nil, nil), &hook.Answer{Children: []json.RawMessage{json.RawMessage(
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"pin":12345678}}`)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(recorded.Answer); strings.Contains(got, "12345678") {
		t.Errorf("the recording has the number: %s", got)
	}
}

// TestMaskedQuery has a credential in the query of the hook's URL, and a query in the parent, which
// the hook needs.
func TestMaskedQuery(t *testing.T) {
	q := question(t)
	q.Controller = decode(t, `{"apiVersion":"metacontroller.k8s.io/v1alpha1","kind":"CompositeController","metadata":
		{"name":"web"},"spec":{"hooks":{"sync":{"webhook":{"url":"https://hook/sync?key=opensesame"}}}}}`)
	q.Parent = decode(t, `{"apiVersion":"demo/v1","kind":"Web","metadata":{"namespace":"shop","name":"a"},
		"spec":{"url":"https://shop/?page=front"}}`)
	r, err := New(q, answer(), nil)
	if err != nil {
		t.Fatal(err)
	}
	text := string(r.Question)
	if strings.Contains(text, "opensesame") || !strings.Contains(text, "https://hook/sync?key=masked") ||
		!strings.Contains(text, "https://shop/?page=front") {
		t.Errorf("got %s, expected a masked query of the hook alone", text)
	}
}
