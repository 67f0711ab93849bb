package integration

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/test/kit"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// awaitCondition waits until an object has a condition with a text in its message.
func (s *surface) awaitCondition(kind, name, condition, text string) {
	s.Helper()
	s.Eventually(kind+" "+name+" has the condition "+condition, func() error {
		c := kit.Condition(s.Get(kind, name), condition)
		if message, _ := c["message"].(string); c == nil || !strings.Contains(message, text) {
			return fmt.Errorf("it is %v", c)
		}
		return nil
	})
}

// record causes another sync of the parent after everything has settled, and adds the requests of
// that sync and the objects to the story. Each object is a kind and a name. The parent comes first,
// and is not listed.
func (s *surface) record(kind, name, title string, objects ...string) {
	s.Helper()
	s.Settled(settled)
	s.section(kind, title)
	s.poke(kind, name, "/sync")
	s.show(kind, name)
	for _, object := range objects {
		kind, name, _ := strings.Cut(object, " ")
		s.show(kind, name)
	}
}

func (s *surface) section(kind, title string) {
	fmt.Fprintf(&s.story, "\n=== %s: %s ===\n", kind, title)
}

// poke changes an annotation of the parent, and adds the requests about that version of the parent
// to the story. It waits for a request to the path.
func (s *surface) poke(kind, name, path string) {
	s.Helper()
	s.pokes++
	value := fmt.Sprint(s.pokes)
	mark := s.hook.mark()
	s.Patch(kind, name, "metadata: {annotations: {poke: '"+value+"'}}")
	asked := func() []hookCall {
		return slices.DeleteFunc(s.hook.about(name, mark),
			func(c hookCall) bool { return c.parent.GetAnnotations()["poke"] != value })
	}
	if kind != "Wire" && kind != "Beam" {
		s.Eventually("the hook is asked about "+name, func() error {
			if !slices.ContainsFunc(asked(), func(c hookCall) bool { return strings.HasSuffix(c.path, path) }) {
				return errors.New("it is not")
			}
			return nil
		})
	}
	s.Settled(settled)
	s.showCalls(asked())
}

// showCalls adds different requests to the story, in the order of their texts. The first of each
// path is complete.
func (s *surface) showCalls(calls []hookCall) {
	byText := map[string]hookCall{}
	for _, c := range calls {
		byText[s.text(c, false)] = c
	}
	for _, text := range slices.Sorted(maps.Keys(byText)) {
		c := byText[text]
		s.story.WriteString(s.text(c, s.complete[c.path]))
		s.complete[c.path] = true
	}
}

func (s *surface) text(c hookCall, short bool) string {
	s.Helper()
	text, err := c.text(short)
	if err != nil {
		s.Fatal(err)
	}
	return normalise(s.Kit, text)
}

// show adds an object to the story, without spec and managed fields.
func (s *surface) show(kind, name string) {
	s.Helper()
	o := s.Get(kind, name).DeepCopy()
	unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(o.Object, "spec")
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		s.Fatal(err)
	}
	s.story.WriteString(normalise(s.Kit, "--- "+o.GetKind()+" "+name+"\n"+string(text)))
}

// fail waits until the parent reports a fault, and adds its conditions to the story. A decorator
// reports a fault by an Event only.
func (s *surface) fail(kind, name, title, text string) {
	s.Helper()
	if kind != "Door" && kind != "Gate" {
		s.awaitCondition(kind, name, "Synced", text)
	}
	s.Eventually(name+" has an Event SyncError: "+text, func() error {
		if messages := s.Events(
			name,
			"SyncError",
		); !slices.ContainsFunc(
			messages,
			func(m string) bool { return strings.Contains(m, text) },
		) {
			return fmt.Errorf("its Events are %q", messages)
		}
		return nil
	})
	s.section(kind, title)
	s.show(kind, name)
}

// remove deletes a parent. The finalize hook first answers false, and then true.
func (s *surface) remove(kind, name string) {
	s.Helper()
	s.Settled(settled)
	s.Delete(kind, name)
	s.Settled(settled)
	s.section(kind, "deleted, not finalized")
	s.poke(kind, name, "/finalize")
	s.show(kind, name)
	s.Patch(kind, name, "spec: {finally: {finalized: true}}")
	s.Eventually(name+" is gone", func() error {
		if s.Find(kind, name) != nil {
			return errors.New("it is there")
		}
		return nil
	})
}

// showControllers adds the declared controllers to the story.
func (s *surface) showControllers() {
	s.section("Controllers", "running")
	for _, name := range []string{"web", "site", "unary", "stream", "nowhere", "invalid"} {
		s.show(kit.CompositeController, s.Name+"-"+name)
	}
	s.show(decoratorController, s.Name+"-door")
	s.show(decoratorController, s.Name+"-gate")
}

// events returns a line for each different Event of the run that the engine recorded.
func (s *surface) events() string {
	set := map[string]bool{}
	for _, e := range s.EngineEvents() {
		about, _, _ := unstructured.NestedStringMap(e.Object, "involvedObject")
		line := fmt.Sprintf("%s %s: %v %v: %v",
			about["kind"], about["name"], e.Object["type"], e.Object["reason"], e.Object["message"])
		set[normalise(s.Kit, line)] = true
	}
	return lines(set)
}
