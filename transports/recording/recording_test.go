package recording

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/hook/wraptest"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/budget"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

func decode(t *testing.T, text string) *object.Object {
	t.Helper()
	o, err := object.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

var (
	secrets = core("Secret", "secrets")
	configs = core("ConfigMap", "configmaps")
)

func core(kind, plural string) object.Resource {
	return object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: kind}, Plural: plural, Namespaced: true}
}

func question(t *testing.T) *hook.Question {
	t.Helper()
	parent := decode(t, `{"apiVersion":"demo/v1","kind":"Web","metadata":{"namespace":"shop","name":"a","uid":"u"},
		"spec":{"big":9007199254740993}}`)
	secret := decode(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"shop","name":"s","annotations":
		{"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":{\"t\":\"YQ==\"}}"}},
		"data":{"password":"aHVudGVyMi1odW50ZXI=","t":"YQ=="}}`)
	config := decode(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"c"},
		"data":{"url":"postgres://app:hunter2-hunter@db","copy":"aHVudGVyMi1odW50ZXI="}}`)
	return &hook.Question{
		Kind: hook.Composite, Op: hook.Sync, Key: hook.ParentKey(parent.Ref()), Parent: parent,
		Controller: decode(t, `{"apiVersion":"metacontroller.k8s.io/v1alpha1","kind":"CompositeController","metadata":
			{"name":"web"},"spec":{"hooks":{"sync":{"webhook":{"url":"http://user:pass@hook/sync"}}}}}`),
		Children: []hook.Group{{Resource: secrets, Objects: []*object.Object{secret}}, {Resource: configs}},
		Related: []hook.RelatedGroup{
			{Group: hook.Group{Resource: configs, Objects: []*object.Object{config}}, Name: "settings"},
			{Group: hook.Group{Resource: secrets}, NotFound: true},
		},
	}
}

func answer() *hook.Answer {
	return &hook.Answer{
		Status: json.RawMessage(`{"n":9007199254740993}`),
		Children: []json.RawMessage{json.RawMessage(
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},
				"stringData":{"password":"hunter2-hunter","new":"brand-new"}}`)},
		ResyncAfter: time.Second,
		Conditions:  []hook.Condition{{Type: "Ready", Status: "True", Reason: "R", Message: "brand-new"}},
		Events:      []hook.Event{{Warning: true, Reason: "R", Message: "m"}}, Results: []hook.Result{{Severity: hook.Info}},
		Requirements: []hook.RelatedRule{{APIVersion: "v1", Resource: "configmaps", Name: "settings", Names: []string{"c"}}},
		States: []hook.ChildState{{Index: 0, Ready: ptr.To(true), DependsOn: []hook.Dependency{{Ref: object.Ref{
			GVK: configs.GVK, Name: "c",
		}}}}},
	}
}

// TestRoundTrip records a question with everything in it, reads it, and records that again.
func TestRoundTrip(t *testing.T) {
	first, err := New(question(t), answer(), nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"hunter2", "aHVudGVyMi1odW50ZXI", "YQ==", "brand-new", "user:pass"} {
		if strings.Contains(string(data), secret) {
			t.Errorf("the recording has %q:\n%s", secret, data)
		}
	}
	read, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	q, err := read.Ask()
	if err != nil {
		t.Fatal(err)
	}
	a, err := read.Reply(q)
	if err != nil {
		t.Fatal(err)
	}
	again, err := New(q, a, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(first.Question), string(again.Question)); diff != "" {
		t.Errorf("question (-recorded +again):\n%s", diff)
	}
	if diff := cmp.Diff(string(first.Answer), string(again.Answer)); diff != "" {
		t.Errorf("answer (-recorded +again):\n%s", diff)
	}
	const large = "9007199254740993"
	if !strings.Contains(string(again.Answer), large) || !strings.Contains(string(again.Question), large) {
		t.Error("an integer has lost digits")
	}
	if len(q.Related) != 2 || q.Related[0].Name != "settings" || len(q.Related[0].Objects) != 1 || !q.Related[1].NotFound {
		t.Errorf("related groups: %+v", q.Related)
	}
}

func TestOtherFiles(t *testing.T) {
	for text, want := range map[string]string{
		`hello`:                                  "is no recording",
		`{"format":"hookloop.dev/recording/v2"}`: `got "hookloop.dev/recording/v2", expected "hookloop.dev/recording/v1"`,
		`{}`:                                     `expected "hookloop.dev/recording/v1"`,
		`{"format":"hookloop.dev/recording/v1","more":1}`:       "unknown field",
		`{"format":"hookloop.dev/recording/v1","kind":"other"}`: `kind: got "other"`,
	} {
		if _, err := Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// TestWrongFiles reads files that are none of this version. Each has one message with the file and
// the expectation.
func TestWrongFiles(t *testing.T) {
	sample, err := os.ReadFile(filepath.Join("..", "..", "sdk", "testdata", "recording.json"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	huge := write("huge.json", nil)
	if err := os.Truncate(huge, MaxFileBytes+1); err != nil { // a file with a hole, which takes no disk
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		write("other.json", []byte(`{"kind": "ConfigMap"}`)): `format: is missing, expected ` +
			`"hookloop.dev/recording/v1": a file of hookloop serve`,
		write("version.json", bytes.Replace(sample, []byte("recording/v1"), []byte("recording/v2"), 1)): `format: got ` +
			`"hookloop.dev/recording/v2", expected "hookloop.dev/recording/v1": record it again, or use the version`,
		write("cut.json", sample[:len(sample)/2]): fmt.Sprintf("is no recording: it ends after %d bytes, in the middle "+
			"of a value; expected a whole file of hookloop serve --record-dir", len(sample)/2),
		write("empty.json", nil): "is no recording: unexpected end of JSON input; expected a file of hookloop serve",
		huge:                     "has 134217729 bytes, expected a recording of at most 134217728",
		dir:                      "is a folder, expected a file of hookloop serve --record-dir",
		dir + "/none.json":       "no such file or directory; expected a file of hookloop serve --record-dir",
	} {
		if _, err := Read(name); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

// TestKinds records the questions of each kind of controller, reads them, and records them again.
func TestKinds(t *testing.T) {
	text := "value"
	children := answer().Children
	rules := []hook.RelatedRule{{APIVersion: "v1", Resource: "configmaps", Namespace: "shop",
		LabelSelector: json.RawMessage(`{"matchLabels":{"a":"b"}}`)}}
	for _, test := range []struct {
		kind   hook.ControllerKind
		op     hook.Op
		answer hook.Answer
	}{
		{hook.Composite, hook.Finalize, hook.Answer{Finalized: true, Children: children}},
		{hook.Composite, hook.Customize, hook.Answer{Related: rules}},
		{hook.Decorator, hook.Sync, hook.Answer{Children: children, Labels: map[string]*string{"a": &text, "b": nil},
			Annotations: map[string]*string{"c": &text}}},
		{hook.Decorator, hook.Finalize, hook.Answer{Finalized: true}},
		{hook.Decorator, hook.Customize, hook.Answer{Related: rules}},
		{hook.Mapping, hook.Map, hook.Answer{Children: children, Events: answer().Events}},
		{hook.Mapping, hook.Tombstone, hook.Answer{Children: children}},
		{hook.Mapping, hook.Finalize, hook.Answer{Finalized: true}},
		{hook.Mapping, hook.Customize, hook.Answer{Related: rules}},
	} {
		t.Run(string(test.kind)+" "+string(test.op), func(t *testing.T) {
			q := question(t)
			q.Kind = test.kind
			q.Op = test.op
			if test.kind == hook.Mapping {
				q.Input = q.Related[0].Objects[0]
				q.MapKey = "ConfigMap/shop/c"
				q.Key.Part = q.MapKey
			}
			if test.op == hook.Customize {
				q.Children = nil
				q.Related = nil
				q.Input = nil
				q.MapKey = ""
				q.Key.Part = ""
			}
			first, err := New(q, &test.answer, nil)
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(first)
			if err != nil {
				t.Fatal(err)
			}
			read, err := Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			asked, err := read.Ask()
			if err != nil {
				t.Fatal(err)
			}
			reply, err := read.Reply(asked)
			if err != nil {
				t.Fatal(err)
			}
			again, err := New(asked, reply, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(data), string(jsonOf(t, again))); diff != "" {
				t.Errorf("(-recorded +again):\n%s\n%s", diff, data)
			}
			if asked.Kind != test.kind || asked.Op != test.op || asked.Key != q.Key ||
				reply.Finalized != test.answer.Finalized ||
				len(reply.Labels) != len(test.answer.Labels) || len(reply.Related) != len(test.answer.Related) {
				t.Errorf("got question %+v and answer %+v", asked, reply)
			}
		})
	}
}

// meter counts results.
type meter struct {
	mu     sync.Mutex
	counts map[string]int
	bytes  int64
}

func (m *meter) Recorded(result string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = map[string]int{}
	}
	m.counts[result]++
}

func (m *meter) Kept(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes = bytes
}

// files returns the recordings in a folder.
func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// ask asks n questions through a recorder, and writes them.
func ask(t *testing.T, r *Recorder, n int, err error) {
	t.Helper()
	opened, openErr := r.Openers(hook.Openers{"webhook": func(hook.Config) (*hook.Opened, error) {
		return &hook.Opened{Address: "http://hook/sync", Hook: hook.Func(
			func(context.Context, *hook.Question) (*hook.Answer, error) {
				if err != nil {
					return nil, err
				}
				return answer(), nil
			})}, nil
	}})["webhook"](hook.Config{Version: "v2"})
	if openErr != nil {
		t.Fatal(openErr)
	}
	for range n {
		if _, got := opened.Ask(t.Context(), question(t)); !errors.Is(got, err) {
			t.Fatal(got)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	r.Run(ended)
}

func TestRecorder(t *testing.T) {
	dir := t.TempDir()
	m := &meter{}
	open := func(perParent int, maxBytes int64) *Recorder {
		t.Helper()
		r, err := Open(Config{Dir: dir, PerParent: perParent, MaxBytes: maxBytes, Meter: m, Engine: "v1"})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	ask(t, open(3, DefaultMaxBytes), 5, nil)
	all := files(t, dir)
	if len(all) != 3 || !strings.Contains(all[0], "composite-web/shop_a/") || m.counts["written"] != 5 {
		t.Fatalf("got %v, %v, want 3 of 5 recordings", all, m.counts)
	}
	info, err := os.Stat(all[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", info.Mode(), err)
	}
	if _, err := Read(all[0]); err != nil {
		t.Error(err)
	}
	ask(t, open(3, DefaultMaxBytes), 1, &hook.Error{Kind: hook.Failed, Hook: "sync", Err: errors.New("no hunter2-hunter")})
	all = files(t, dir)
	last, err := Read(all[len(all)-1])
	if err != nil || len(all) != 3 || last.Error == nil || last.Error.Kind != string(hook.Failed) ||
		strings.Contains(last.Error.Message, "hunter2") || last.Engine != "v1" {
		t.Errorf("got %d files, %+v, %v, want the failed question as the third", len(all), last, err)
	}
	ask(t, open(3, info.Size()*2), 1, nil)
	all = files(t, dir)
	if len(all) > 2 || m.bytes > info.Size()*2 {
		t.Errorf("got %d files of %d bytes, want at most %d", len(all), m.bytes, info.Size()*2)
	}
}

// TestRecordsATransport records what is asked over a transport that a program adds.
func TestRecordsATransport(t *testing.T) {
	dir := t.TempDir()
	m := &meter{}
	r, err := Open(Config{Dir: dir, PerParent: 3, MaxBytes: DefaultMaxBytes, Meter: m})
	if err != nil {
		t.Fatal(err)
	}
	openers := r.Openers(hook.Openers{
		"letter": func(hook.Config) (*hook.Opened, error) {
			return &hook.Opened{Address: "letter:home", Hook: hook.Func(
				func(context.Context, *hook.Question) (*hook.Answer, error) { return answer(), nil })}, nil
		},
		"nothing": func(hook.Config) (*hook.Opened, error) { return nil, nil },
	})
	if opened, err := openers["nothing"](hook.Config{}); opened != nil || err != nil {
		t.Errorf("a transport that opens nothing: got %v and %v, want what it returned", opened, err)
	}
	opened, err := openers["letter"](hook.Config{Version: "v2"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opened.Ask(t.Context(), question(t)); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	r.Run(ended)
	all := files(t, dir)
	if len(all) != 1 {
		t.Fatalf("got the recordings %v, want one", all)
	}
	read, err := Read(all[0])
	if err != nil {
		t.Fatal(err)
	}
	if want := (Hook{Transport: "letter", Address: "letter:home", Version: "v2"}); read.Hook != want {
		t.Errorf("the recording has the hook %+v, want %+v", read.Hook, want)
	}
	asked, err := read.Ask()
	if err != nil {
		t.Fatal(err)
	}
	if want := question(t).Parent.Ref(); asked.Parent.Ref() != want {
		t.Errorf("the recording asks about %v, want %v", asked.Parent.Ref(), want)
	}
}

// TestNoRoom drops questions, and asks the hook nevertheless.
func TestNoRoom(t *testing.T) {
	dir := t.TempDir()
	m := &meter{}
	r, err := Open(Config{
		Dir: dir, PerParent: 3, MaxBytes: DefaultMaxBytes, Meter: m, Memory: budget.New(1 << 10).Share(budget.Recordings),
	})
	if err != nil {
		t.Fatal(err)
	}
	ask(t, r, 3, nil)
	if m.counts["dropped"] != 3 || len(files(t, dir)) != 0 {
		t.Errorf("got %v and %v, want 3 dropped", m.counts, files(t, dir))
	}
	r.Memory = nil
	ask(t, r, maxQueued+10, nil)
	if m.counts["dropped"] != 13 {
		t.Errorf("got %v, want 13 dropped", m.counts)
	}
}

// TestOff shows that hooks are as they were without a recorder.
func TestOff(t *testing.T) {
	var r *Recorder
	openers := hook.Openers{"webhook": nil}
	if got := r.Openers(openers); len(got) != 1 {
		t.Errorf("got %v", got)
	}
	r.Run(t.Context())
}

// TestOffAllocatesNothing measures a question without a recorder.
func TestOffAllocatesNothing(t *testing.T) {
	var r *Recorder
	q, a, ctx := question(t), answer(), t.Context()
	opened, err := r.Openers(hook.Openers{"webhook": func(hook.Config) (*hook.Opened, error) {
		answer := func(context.Context, *hook.Question) (*hook.Answer, error) { return a, nil }
		return &hook.Opened{Hook: hook.Func(answer)}, nil
	}})["webhook"](hook.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := opened.Ask(ctx, q); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a question allocates %v times, want 0", n)
	}
}

// BenchmarkAsk is a question with a recorder that is off, and with one that drops everything, as it
// does without room: both are on the path of a sync.
func BenchmarkAsk(b *testing.B) {
	parent, err := object.Decode([]byte(`{"apiVersion":"demo/v1","kind":"Web","metadata":{"name":"a"}}`))
	if err != nil {
		b.Fatal(err)
	}
	q := &hook.Question{Kind: hook.Composite, Op: hook.Sync, Parent: parent, Controller: parent}
	a := &hook.Answer{}
	asked := hook.Openers{"webhook": func(hook.Config) (*hook.Opened, error) {
		answer := func(context.Context, *hook.Question) (*hook.Answer, error) { return a, nil }
		return &hook.Opened{Hook: hook.Func(answer)}, nil
	}}
	on, err := Open(Config{Dir: b.TempDir(), PerParent: 1, MaxBytes: 1, Meter: &meter{}})
	if err != nil {
		b.Fatal(err)
	}
	for name, r := range map[string]*Recorder{"off": nil, "on": on} {
		opened, err := r.Openers(asked)["webhook"](hook.Config{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := opened.Ask(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestFolderThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Dir: filepath.Join(file, "dir"), Meter: &meter{}}); err == nil {
		t.Error("got no error")
	}
}

// TestSample reads the recording that tests the helpers of all SDKs.
func TestSample(t *testing.T) {
	r, err := Read(filepath.Join("..", "..", "sdk", "testdata", "recording.json"))
	if err != nil {
		t.Fatal(err)
	}
	q, err := r.Ask()
	if err != nil {
		t.Fatal(err)
	}
	a, err := r.Reply(q)
	if err != nil || a.Requirements[0].Name != "login" {
		t.Fatalf("answer %+v, %v", a, err)
	}
	again, err := New(q, a, nil)
	if err != nil || !strings.Contains(string(again.Answer), "bWFza2VkLTE=") {
		t.Errorf("the masks have changed: %s, %v", again.Answer, err)
	}
}

func TestARecorderPassesOnEveryField(t *testing.T) {
	r, err := Open(Config{Dir: t.TempDir(), PerParent: 1, MaxBytes: 1, Meter: &meter{}})
	if err != nil {
		t.Fatal(err)
	}
	openers := r.Openers(hook.Openers{"grpc": func(hook.Config) (*hook.Opened, error) { return wraptest.Full(), nil }})
	opened, err := openers["grpc"](hook.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if missing := wraptest.Missing(opened); len(missing) > 0 || opened.Named != "shop" {
		t.Errorf("the recorded hook does not have %q, and has the name %q", missing, opened.Named)
	}
}
