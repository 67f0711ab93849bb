package webhook

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

// encode writes a question as JSON. A large one refers to the raw bytes of its objects.
func encode(q *hook.Question, version string) *requestBody {
	w := &writer{version: version, parent: q.Parent}
	if n := size(q); n <= largeQuestion {
		w.Grow(n)
	} else {
		w.refers = true
	}
	w.question(q)
	return &requestBody{text: w.Bytes(), inserted: w.inserted}
}

func (w *writer) question(q *hook.Question) {
	kind := q.Kind.Descriptor()
	parent := kind.ParentField
	children := kind.ChildrenField
	if q.Op == hook.Customize {
		parent = "parent"
	}
	w.WriteString(`{"controller":`)
	w.object(q.Controller)
	w.WriteString(`,"` + parent + `":`)
	w.object(q.Parent)
	if q.Op != hook.Customize {
		w.input(q)
		w.WriteString(`,"` + children + `":{`)
		for i, group := range q.Children {
			w.group(i, group)
		}
		w.WriteString(`},"related":{`)
		for i, group := range byResource(q.Related) {
			w.group(i, group)
		}
		w.WriteByte('}')
		w.required(q.Related)
		w.WriteString(`,"finalizing":` + strconv.FormatBool(q.Op == hook.Finalize))
	}
	w.WriteByte('}')
}

// input writes the fields that only map hooks have: "mapKey": "…", "input": object.
func (w *writer) input(q *hook.Question) {
	if !q.Kind.Descriptor().ByInput {
		return
	}
	w.WriteString(`,"mapKey":`)
	w.quote(q.MapKey)
	if q.Input != nil {
		w.WriteString(`,"input":`)
		w.object(q.Input)
	}
}

// size returns an upper estimate of the request's size, so that one allocation suffices.
func size(q *hook.Question) int {
	n := 256 + q.Controller.Size() + q.Parent.Size() + len(q.MapKey)
	if q.Input != nil {
		n += q.Input.Size()
	}
	add := func(g hook.Group) {
		n += 64 + len(g.Resource.GVK.Group)
		for _, o := range g.Objects {
			n += o.Size() + len(o.Namespace()) + len(o.Name()) + 8
		}
	}
	for _, g := range q.Children {
		add(g)
	}
	for _, g := range q.Related {
		add(g.Group)
	}
	return n
}

type writer struct {
	bytes.Buffer
	version string
	parent  *object.Object
	// refers makes inserted have the objects, instead of the buffer.
	refers   bool
	inserted []insertion
}

// object writes the JSON of an object.
func (w *writer) object(o *object.Object) {
	if raw := o.Raw(); w.refers && len(raw) >= minInserted {
		w.inserted = append(w.inserted, insertion{w.Len(), raw})
	} else {
		w.Write(raw)
	}
}

// group writes "Kind.version": {"key": object, …}.
func (w *writer) group(index int, g hook.Group) {
	if index > 0 {
		w.WriteByte(',')
	}
	w.WriteString(`"` + object.KindString(g.Resource.GVK) + `":`)
	w.objects(g)
}

// required writes the groups that have a name, for version v2: "required": {"name": {"key": object,
// …}}.
func (w *writer) required(groups []hook.RelatedGroup) {
	open := false
	for _, g := range groups {
		if g.Name == "" || w.version != "v2" {
			continue
		}
		if !open {
			w.WriteString(`,"required":{`)
		} else {
			w.WriteByte(',')
		}
		open = true
		w.WriteString(`"` + g.Name + `":`) // names of groups need no escaping
		w.objects(g.Group)
	}
	if open {
		w.WriteByte('}')
	}
}

// byResource merges groups of the same resource and removes duplicate objects. Groups with
// different names may cover the same resource.
func byResource(related []hook.RelatedGroup) []hook.Group {
	groups := make([]hook.Group, 0, len(related))
	for _, r := range related {
		i := slices.IndexFunc(groups, func(g hook.Group) bool { return g.Resource == r.Resource })
		if i < 0 {
			groups = append(groups, r.Group)
			continue
		}
		set := object.NewSet(slices.Concat(groups[i].Objects, r.Objects)...)
		groups[i].Objects = set.Of(r.Resource.GVK)
	}
	return groups
}

// objects writes {"key": object, …}.
func (w *writer) objects(g hook.Group) {
	w.WriteByte('{')
	first := true
	for _, o := range g.Objects {
		if !w.visible(o) {
			continue
		}
		if !first {
			w.WriteByte(',')
		}
		first = false
		w.quote(w.key(o))
		w.WriteByte(':')
		w.object(o)
	}
	w.WriteByte('}')
}

// quote writes a name as a JSON string. Few names need escaping: those of roles may have any
// character but "/" and "%".
func (w *writer) quote(name string) {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(name) // a string marshals
			w.Write(quoted)
			return
		}
	}
	w.WriteByte('"')
	w.WriteString(name)
	w.WriteByte('"')
}

// key returns the key of an object in its group (compatibility: inner key).
func (w *writer) key(o *object.Object) string {
	if w.version == "v2" || w.parent.Namespace() == "" {
		return o.Ref().NamespacedName()
	}
	return o.Name()
}

// visible reports whether an object belongs into the request. In v1, a namespaced parent sees only
// its own namespace.
func (w *writer) visible(o *object.Object) bool {
	return w.version == "v2" || w.parent.Namespace() == "" || o.Namespace() == w.parent.Namespace()
}
