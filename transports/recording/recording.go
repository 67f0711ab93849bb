// Package recording stores what a hook was asked and what it answered in files. "hookloop serve
// --record-dir" writes them; "hookloop replay", "hookloop verify --recording" and the test helpers
// of the SDKs read them.
//
// To record, wrap openers with [Recorder.Openers] and call [Recorder.Run]. All transports and all
// kinds of controllers give the same recordings. A Recorder never delays a question: it drops what
// it cannot queue, and counts that. To read a file, call [Read]; [Recording.Ask] and
// [Recording.Reply] return the question and the answer.
//
// A recording is a JSON file. It contains the question as a webhook of version v2 would get it, and
// fields that this JSON lacks. Secret values are masked, and headers are not recorded. All
// functions are safe for concurrent use.
package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/transports/webhook"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Format identifies these files and their version. Readers reject any other value.
const Format = "hookloop.dev/recording/v1"

// Recording holds a question and its answer. Marshal it to JSON to get the file.
type Recording struct {
	Format     string    `json:"format"`
	RecordedAt time.Time `json:"recordedAt"`
	// Engine is the engine's version.
	Engine string              `json:"engine,omitempty"`
	Kind   hook.ControllerKind `json:"kind"`
	// Operation is sync, finalize, customize, map or tombstone.
	Operation hook.Op `json:"operation"`
	Hook      Hook    `json:"hook"`
	// Seconds is how long the answer took.
	Seconds float64 `json:"seconds"`
	// PreviousRevision is set if the question shows the parent as it was at a previous revision.
	PreviousRevision bool `json:"previousRevision,omitempty"`
	// Children lists the declared kinds, and Related the groups of related objects.
	Children []Group `json:"children"`
	Related  []Group `json:"related,omitempty"`
	// Masked counts the Secret values that were masked.
	Masked int `json:"masked,omitempty"`
	// Question is the question as a webhook would get it, in JSON of version v2.
	Question json.RawMessage `json:"question"`
	// Answer is the answer in the same JSON. If there is no answer, Error is set instead.
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  *Failure        `json:"error,omitempty"`
}

// Hook describes the hook that was asked.
type Hook struct {
	Transport string `json:"transport"`
	Address   string `json:"address"`
	Version   string `json:"version,omitempty"`
}

// Group describes a resource of children or of related objects.
type Group struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Resource   string `json:"resource"`
	Namespaced bool   `json:"namespaced"`
	// Name comes from a requirement. NotFound and Error are set for related objects that could not
	// be read.
	Name     string `json:"name,omitempty"`
	NotFound bool   `json:"notFound,omitempty"`
	Error    string `json:"error,omitempty"`
}

// Failure is the error of a call.
type Failure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// exchange is a question and its outcome before they are encoded.
type exchange struct {
	question *hook.Question
	answer   *hook.Answer
	err      error
	at       time.Time
	took     time.Duration
	hook     Hook
}

// New makes a recording from an answer or an error.
func New(q *hook.Question, a *hook.Answer, err error) (*Recording, error) {
	return encode(exchange{question: q, answer: a, err: err})
}

// encode makes a recording and masks Secrets.
func encode(e exchange) (*Recording, error) {
	q := e.question
	r := &Recording{
		Format: Format, RecordedAt: e.at.UTC(), Kind: q.Kind, Operation: q.Op, Hook: e.hook, Seconds: e.took.Seconds(),
		PreviousRevision: q.PreviousRevision, Children: []Group{},
	}
	for _, g := range q.Children {
		r.Children = append(r.Children, groupOf(g.Resource))
	}
	for _, g := range q.Related {
		group := groupOf(g.Resource)
		group.Name = g.Name
		group.NotFound = g.NotFound
		if g.Err != nil {
			group.Error = g.Err.Error()
		}
		r.Related = append(r.Related, group)
	}
	if e.err != nil {
		r.Error = &Failure{Kind: string(hook.ErrorKindOf(e.err)), Message: e.err.Error()}
	}
	question, err := object.DecodeMap(webhook.Encode(q, "v2"))
	if err != nil {
		return nil, err
	}
	var answer map[string]any
	if e.answer != nil {
		answer, err = answerMap(q, e.answer)
		if err != nil {
			return nil, err
		}
	}
	maskQueries(question["controller"])
	m := newMasks(question, answer)
	for i := range r.Related {
		r.Related[i].Error = m.text(r.Related[i].Error)
	}
	r.Question, err = json.Marshal(m.mask(question))
	if err != nil {
		return nil, err
	}
	if answer != nil {
		r.Answer, err = json.Marshal(m.mask(answer))
		if err != nil {
			return nil, err
		}
	}
	if r.Error != nil {
		r.Error.Message = m.text(r.Error.Message)
	}
	r.Masked = len(m.names)
	return r, nil
}

func groupOf(r object.Resource) Group {
	return Group{
		APIVersion: r.GVK.GroupVersion().String(), Kind: r.GVK.Kind, Resource: r.Plural, Namespaced: r.Namespaced,
	}
}

// Resource returns the group's resource.
func (g Group) resource() object.Resource {
	return object.Resource{
		GVK: schema.FromAPIVersionAndKind(g.APIVersion, g.Kind), Plural: g.Resource, Namespaced: g.Namespaced,
		HasStatus: true,
	}
}

// Resources returns the resources of children and of related objects.
func (r *Recording) Resources() []object.Resource {
	var all []object.Resource
	for _, groups := range [][]Group{r.Children, r.Related} {
		for _, g := range groups {
			all = append(all, g.resource())
		}
	}
	return all
}

// MaxFileBytes limits the size of a recording.
const MaxFileBytes = 128 << 20

// Read reads a recording from a file. An error names the file and the expected format.
func Read(name string) (*Recording, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w; expected a file of hookloop serve --record-dir", err)
	case info.IsDir():
		return nil, fmt.Errorf("%s: is a folder, expected a file of hookloop serve --record-dir", name)
	case info.Size() > MaxFileBytes:
		return nil, fmt.Errorf("%s: has %d bytes, expected a recording of at most %d", name, info.Size(), MaxFileBytes)
	}
	data, err := os.ReadFile(name) //nolint:gosec // the caller names the file
	if err != nil {
		return nil, err
	}
	r, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// Decode decodes a recording.
func Decode(data []byte) (*Recording, error) {
	var head struct{ Format any }
	if err := json.Unmarshal(data, &head); err != nil && bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) &&
		errors.Is(json.NewDecoder(bytes.NewReader(data)).Decode(&head), io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("is no recording: it ends after %d bytes, in the middle of a value; "+
			"expected a whole file of hookloop serve --record-dir", len(data))
	} else if err != nil {
		return nil, fmt.Errorf("is no recording: %w; expected a file of hookloop serve --record-dir", object.Explain(err))
	}
	if head.Format == nil {
		return nil, fmt.Errorf("format: is missing, expected %q: a file of hookloop serve --record-dir", Format)
	}
	if head.Format != Format {
		return nil, fmt.Errorf("format: got %q, expected %q: record it again, or use the version of hookloop that wrote it",
			fmt.Sprint(head.Format), Format)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	r := &Recording{}
	if err := decoder.Decode(r); err != nil {
		return nil, fmt.Errorf("is no valid recording: %w", object.Explain(err))
	}
	if _, err := r.Ask(); err != nil {
		return nil, fmt.Errorf("is no valid recording: %w", err)
	}
	return r, nil
}

// asJSON returns the question's JSON.
type asJSON struct {
	Controller json.RawMessage                       `json:"controller"`
	Parent     json.RawMessage                       `json:"parent"`
	Object     json.RawMessage                       `json:"object"`
	MapKey     string                                `json:"mapKey"`
	Input      json.RawMessage                       `json:"input"`
	Children   map[string]map[string]json.RawMessage `json:"children"`
	Attached   map[string]map[string]json.RawMessage `json:"attachments"`
	Outputs    map[string]map[string]json.RawMessage `json:"outputs"`
	Related    map[string]map[string]json.RawMessage `json:"related"`
	Required   map[string]map[string]json.RawMessage `json:"required"`
}

// Ask returns the recorded question.
func (r *Recording) Ask() (*hook.Question, error) {
	if _, known := kinds[r.Kind]; !known {
		return nil, fmt.Errorf("kind: got %q, expected composite, decorator or map", r.Kind)
	}
	var raw asJSON
	if err := json.Unmarshal(r.Question, &raw); err != nil {
		return nil, fmt.Errorf("question: %w", object.Explain(err))
	}
	q := &hook.Question{Kind: r.Kind, Op: r.Operation, MapKey: raw.MapKey, PreviousRevision: r.PreviousRevision}
	var err error
	q.Controller, err = object.Decode(raw.Controller)
	if err != nil {
		return nil, fmt.Errorf("question.controller: %w", err)
	}
	if len(raw.Parent) == 0 {
		raw.Parent = raw.Object
	}
	q.Parent, err = object.Decode(raw.Parent)
	if err != nil {
		return nil, fmt.Errorf("question: the parent: %w", err)
	}
	if len(raw.Input) > 0 {
		q.Input, err = object.Decode(raw.Input)
		if err != nil {
			return nil, fmt.Errorf("question.input: %w", err)
		}
	}
	q.Key = hook.Key{Parent: q.Parent.Ref(), Part: q.MapKey}
	return q, r.addGroups(q, raw)
}

// kinds lists the kinds of controllers that a recording may name.
var kinds = func() map[hook.ControllerKind]bool {
	all := map[hook.ControllerKind]bool{}
	for _, d := range hook.Descriptors() {
		all[d.ControllerKind] = true
	}
	return all
}()

// addGroups adds observed and related objects to the question.
func (r *Recording) addGroups(q *hook.Question, raw asJSON) error {
	children := map[string]map[string]map[string]json.RawMessage{
		"children": raw.Children, "attachments": raw.Attached, "outputs": raw.Outputs,
	}[r.Kind.Descriptor().ChildrenField]
	for _, g := range r.Children {
		group, err := groupObjects(g, children)
		if err != nil {
			return err
		}
		if r.Operation != hook.Customize {
			q.Children = append(q.Children, group)
		}
	}
	for _, g := range r.Related {
		from := raw.Related
		key := object.KindString(g.resource().GVK)
		if g.Name != "" {
			from = map[string]map[string]json.RawMessage{key: raw.Required[g.Name]}
		}
		group, err := groupObjects(g, from)
		if err != nil {
			return err
		}
		related := hook.RelatedGroup{Group: group, Name: g.Name, NotFound: g.NotFound}
		if g.Error != "" {
			related.Err = errors.New(g.Error)
		}
		q.Related = append(q.Related, related)
	}
	return nil
}

// groupObjects returns a group's objects in the engine's order.
func groupObjects(g Group, from map[string]map[string]json.RawMessage) (hook.Group, error) {
	group := hook.Group{Resource: g.resource()}
	var all []*object.Object
	for key, raw := range from[object.KindString(group.Resource.GVK)] {
		o, err := object.Decode(raw)
		if err != nil {
			return group, fmt.Errorf("question: %s %q: %w", g.Kind, key, err)
		}
		all = append(all, o)
	}
	set := object.NewSet(all...)
	group.Objects = set.Of(group.Resource.GVK)
	return group, nil
}

// Reply returns the recorded answer, or nil if the call failed.
func (r *Recording) Reply(q *hook.Question) (*hook.Answer, error) {
	if len(r.Answer) == 0 {
		return nil, nil
	}
	a, err := webhook.Decode(q, "v2", r.Answer, false)
	if err != nil {
		return nil, fmt.Errorf("answer: %w", err)
	}
	return a, nil
}
