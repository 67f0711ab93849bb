package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/test/kit"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// section begins a story. Its objects and the requests of each operation have files of their own.
func (s *surface) section(kind, title string) {
	s.title = kind + ": " + title
	s.story = s.file("")
}

// file returns the text of a file of the current story, with the title if it is new.
func (s *surface) file(suffix string) *strings.Builder {
	name := strings.ToLower(strings.NewReplacer(" ", "-", ",", "", ":", "").Replace(s.title)) + suffix + ".txt"
	if s.stories[name] == nil {
		s.stories[name] = &strings.Builder{}
		fmt.Fprintln(s.stories[name], s.title)
	}
	return s.stories[name]
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
		s.file("-" + path.Base(c.path)).WriteString(s.text(c, s.complete[c.path]))
		s.complete[c.path] = true
	}
}

func (s *surface) text(c hookCall, short bool) string {
	s.Helper()
	return "\n--- " + c.path + "\n" + strings.Join(c.headers, "\n") + "\n\n" + s.folded(c.content(short)) + "\n"
}

// show adds an object to the story, without spec and managed fields.
func (s *surface) show(kind, name string) {
	s.Helper()
	o := s.Get(kind, name).DeepCopy()
	unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(o.Object, "spec")
	fmt.Fprintf(s.story, "\n--- %s %s\n%s\n", o.GetKind(), normalise(s.Kit, name), s.folded(o.Object))
}

// folded returns JSON with what fits on a line on one line. What differs from run to run is
// replaced before, so that the lines break at the same places in every run.
func (s *surface) folded(value any) string {
	s.Helper()
	var text strings.Builder
	if err := fold(&text, normalised(s.Kit, value), ""); err != nil {
		s.Fatal(err)
	}
	return text.String()
}

// normalised returns a copy of a JSON value with all strings and keys normalised.
func normalised(k *kit.Kit, value any) any {
	switch value := value.(type) {
	case string:
		return normalise(k, value)
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = normalised(k, element)
		}
		return list
	case map[string]any:
		fields := make(map[string]any, len(value))
		for key, field := range value {
			fields[normalise(k, key)] = normalised(k, field)
		}
		if version, ok := fields["resourceVersion"].(string); ok && strings.Trim(version, "0123456789") == "" {
			fields["resourceVersion"] = "<version>"
		}
		return fields
	}
	return value
}

// width is the length of a line of a story that fold does not exceed without need.
const width = 110

// fold writes a JSON value. A list or an object that does not fit on the line is broken: its
// elements fill the lines below.
func fold(out *strings.Builder, value any, indent string) error {
	text, err := compact(value)
	if err != nil {
		return err
	}
	fields, isObject := value.(map[string]any)
	list, isList := value.([]any)
	if len(indent)+len(text) <= width || !isObject && !isList {
		out.WriteString(text)
		return nil
	}
	lines := filler{out: out, indent: indent + "  "}
	if isList {
		out.WriteString("[")
		for _, element := range list {
			if err := lines.add("", element); err != nil {
				return err
			}
		}
		out.WriteString("\n" + indent + "]")
		return nil
	}
	out.WriteString("{")
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if err := lines.add(fmt.Sprintf("%q:", key), fields[key]); err != nil {
			return err
		}
	}
	out.WriteString("\n" + indent + "}")
	return nil
}

// filler writes the elements of a list or an object, several on a line if they fit.
type filler struct {
	out    *strings.Builder
	indent string
	column int  // of the current line; 0 before the first element
	broken bool // the last element has lines of its own
}

// add writes an element, with its key if it has one.
func (f *filler) add(key string, value any) error {
	text, err := compact(value)
	if err != nil {
		return err
	}
	length := len(key) + len(text)
	fits := len(f.indent)+length <= width
	switch {
	case f.column == 0:
		f.out.WriteString("\n" + f.indent)
		f.column = len(f.indent)
	case fits && !f.broken && f.column+len(", ")+length <= width:
		f.out.WriteString(", ")
		f.column += len(", ")
	default:
		f.out.WriteString(",\n" + f.indent)
		f.column = len(f.indent)
	}
	f.column += length
	f.broken = !fits
	f.out.WriteString(key)
	return fold(f.out, value, f.indent)
}

// compact returns JSON on one line.
func compact(value any) (string, error) {
	var line strings.Builder
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return strings.TrimSuffix(line.String(), "\n"), err
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
