package mapping

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/storytest"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/internal/watch/viewtest"
	"github.com/hookloop/hookloop/engine/object"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"
)

// TestStories runs the files in testdata. Each begins with a sentence about the situation; its
// sections are
//
//	controller.yaml  the MapController
//	parent.yaml      the parent
//	world.yaml       the other objects; "part: KEY" makes one an output of the parent,
//	                 "applied: true" gives it a last-applied state; absent marks are added,
//	                 null removes one
//	broken.yaml      the states of resources that cannot be read
//	parts            the parts that are synced; absent, those that listParts lists
//	answers.yaml     the answers by part
//	result           for each part the question, the writes before it, and the plan, or the error
func TestStories(t *testing.T) {
	storytest.Run(t, "result", func(t *testing.T, archive *txtar.Archive) string {
		return newStory(t, archive).tell()
	})
}

// story is one file.
type story struct {
	t       *testing.T
	shape   *Shape
	refused error
	parent  *object.Object
	reader  *viewtest.Reader
	parts   []string
	answers map[string]answerFile
	out     strings.Builder
}

func newStory(t *testing.T, archive *txtar.Archive) *story {
	t.Helper()
	s := &story{t: t, parent: documents(t, storytest.Section(archive, "parent.yaml"), "", plan.Owner{})[0]}
	s.shape, s.refused = declare(t, storytest.Section(archive, "controller.yaml"))
	if s.refused != nil {
		return s
	}
	s.reader = viewtest.NewReader(append(
		documents(t, storytest.Section(archive, "world.yaml"), s.shape.object.Name(), s.shape.owner(s.parent)), s.parent)...)
	var broken map[string]view.State
	for name, into := range map[string]any{"answers.yaml": &s.answers, "broken.yaml": &broken} {
		if err := yaml.UnmarshalStrict([]byte(storytest.Section(archive, name)), into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for plural, state := range broken {
		i := slices.IndexFunc(served, func(r object.Resource) bool { return r.Plural == plural })
		s.reader.Break(served[i], state)
	}
	s.parts = strings.Fields(storytest.Section(archive, "parts"))
	return s
}

func (s *story) printf(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

func (s *story) tell() string {
	if s.refused != nil {
		s.printf("the controller is refused: %v", s.refused)
		return s.out.String()
	}
	if len(s.parts) == 0 {
		parts, detached, err := listParts(s.shape, s.reader, s.parent)
		if err != nil {
			s.printf("no parts: %v", err)
			return s.out.String()
		}
		s.printf("parts %d, detached %d", len(parts), detached)
		s.parts = parts
	}
	for _, part := range s.parts {
		s.printf("\n%s", part)
		if err := s.sync(part); err != nil {
			s.printf("  error: %v", err)
		}
	}
	return s.out.String()
}

// sync observes, asks and plans one part.
func (s *story) sync(part string) error {
	o, questions, err := observe(s.shape, shape.Input{Reader: s.reader, Key: keyOf(s.parent, part)})
	if err != nil {
		return err
	}
	if o == nil {
		s.printf("  gone")
		return nil
	}
	s.actions("before", o.Prepare)
	if o.SkipChildren {
		s.printf("  no more")
		return nil
	}
	var answers []*hook.Answer
	for _, q := range questions {
		answers = append(answers, s.ask(q))
	}
	in := plan.Input{Observed: o}
	desired, err := s.shape.Desired(in, answers)
	if err != nil {
		return err
	}
	result, err := plan.Make(in, desired)
	if err != nil {
		return err
	}
	s.actions("first", result.First)
	s.actions("then", result.Actions)
	s.printf("  unchanged %d, pending %d, held %d", result.Unchanged, result.Pending, result.HeldBack)
	if desired.ResyncAfter > 0 {
		s.printf("  again after %s", desired.ResyncAfter)
	}
	if desired.RemoveFinalizer != "" {
		s.printf("  finalized")
	}
	return nil
}

// ask prints a question and returns the answer of the file.
func (s *story) ask(q *hook.Question) *hook.Answer {
	if q.MapKey != q.Key.Part || q.Kind != hook.Mapping || q.Controller != s.shape.object {
		s.t.Errorf("the question is %+v", q)
	}
	input := "none"
	if q.Input != nil {
		input = q.Input.Ref().String()
	}
	var outputs []string
	for _, g := range q.Children {
		for _, o := range g.Objects {
			outputs = append(outputs, o.Ref().String())
		}
	}
	s.printf("  ask %s, input %s, outputs %v", q.Op, input, outputs)
	file, found := s.answers[q.MapKey]
	if !found {
		s.t.Errorf("%s is asked about %s, which has no answer", q.Op, q.MapKey)
	}
	return &hook.Answer{
		Children: file.Outputs, Status: file.Status, Conditions: file.Conditions, Finalized: file.Finalized,
		ResyncAfter: time.Duration(file.ResyncAfterSeconds * float64(time.Second)),
	}
}

// actions prints actions with what they write of the marks.
func (s *story) actions(stage string, actions []plan.Action) {
	for _, a := range actions {
		s.printf("  %s: %s", stage, a)
		metadata, _ := a.Body["metadata"].(map[string]any)
		lines := map[string]string{}
		for field, patch := range map[string]any{"labels": metadata["labels"], "annotations": metadata["annotations"]} {
			values, _ := patch.(map[string]any)
			for key, value := range values {
				if key != object.LastAppliedAnnotation {
					lines[field+" "+key] = fmt.Sprint(value)
				}
			}
		}
		for field, patch := range map[string]map[string]*string{"labels": a.Labels, "annotations": a.Annotations} {
			for key, value := range patch {
				text, err := json.Marshal(value)
				if err != nil {
					s.t.Fatal(err)
				}
				lines[field+" "+key] = string(text)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(lines)) {
			s.printf("    %s: %s", key, lines[key])
		}
	}
}
