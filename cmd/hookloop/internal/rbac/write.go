package rbac

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hookloop/hookloop/engine/rights"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// role is a ClusterRole or Role of the output, with a comment for each rule.
type role struct {
	object   map[string]any
	rules    []rbacv1.PolicyRule
	comments []string
}

// roles groups the grants, in the order of the output.
func (a *Access) roles() []*role {
	var out []*role
	byName := map[string]*role{}
	for _, g := range a.grants {
		key := string(g.part) + "/" + g.namespace
		r := byName[key]
		if r == nil {
			r = &role{object: a.header(g)}
			byName[key], out = r, append(out, r)
		}
		r.add(g)
	}
	return out
}

// add adds the rule of a grant, or its resource to the last rule if that is the same otherwise.
func (r *role) add(g *grant) {
	why := strings.Join(g.why, ", ")
	last := len(r.rules) - 1
	if last >= 0 && r.comments[last] == why && r.rules[last].APIGroups[0] == g.group &&
		slices.Equal(r.rules[last].Verbs, g.verbs) && slices.Equal(r.rules[last].ResourceNames, g.names) {
		r.rules[last].Resources = append(r.rules[last].Resources, g.resource)
		return
	}
	r.rules = append(r.rules, rbacv1.PolicyRule{
		APIGroups: []string{g.group}, Resources: []string{g.resource}, ResourceNames: g.names, Verbs: g.verbs,
	})
	r.comments = append(r.comments, why)
}

// name is the name of a role of the output.
func (a *Access) name(p part) string {
	return strings.TrimSuffix(a.options.Name+"-"+string(p), "-")
}

// header is the role of a grant without its rules.
func (a *Access) header(g *grant) map[string]any {
	metadata := map[string]any{"name": a.name(g.part)}
	kind := "ClusterRole"
	switch {
	case g.namespace != "":
		kind = "Role"
		metadata["namespace"] = g.namespace
	case !a.options.Engine:
		metadata["labels"] = map[string]string{rights.AggregateLabel: "true"}
	}
	return map[string]any{"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": kind, "metadata": metadata}
}

// binding binds a role to the engine's account; nil for a role that is aggregated.
func (a *Access) binding(r *role) map[string]any {
	kind, _ := r.object["kind"].(string)
	if kind == "ClusterRole" && !a.options.Engine {
		return nil
	}
	from, _ := r.object["metadata"].(map[string]any)
	metadata := map[string]any{"name": from["name"]}
	if kind == "Role" {
		metadata["namespace"] = from["namespace"]
	}
	return map[string]any{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": kind + "Binding", "metadata": metadata,
		"roleRef": map[string]any{"apiGroup": rbacv1.GroupName, "kind": kind, "name": from["name"]},
		"subjects": []any{map[string]any{
			"kind": "ServiceAccount", "name": a.options.Account.Name, "namespace": a.options.Account.Namespace,
		}},
	}
}

// WriteYAML writes the roles and their bindings, with a comment above each rule, and the notes.
func (a *Access) WriteYAML(w io.Writer) error {
	var out bytes.Buffer
	for _, note := range a.Notes {
		comment(&out, "", "Note: "+note+".")
	}
	for i, r := range a.roles() {
		if i > 0 {
			out.WriteString("---\n")
		}
		if err := document(&out, r.object); err != nil {
			return err
		}
		out.WriteString("rules:\n")
		for i, rule := range r.rules {
			comment(&out, "", upper(r.comments[i]))
			fmt.Fprintf(&out, "- apiGroups: [%q]\n  resources: [%s]\n", rule.APIGroups[0], sequence(rule.Resources, plainName))
			if len(rule.ResourceNames) > 0 {
				fmt.Fprintf(&out, "  resourceNames: [%s]\n", sequence(rule.ResourceNames, nil))
			}
			fmt.Fprintf(&out, "  verbs: [%s]\n", strings.Join(rule.Verbs, ", "))
		}
		if binding := a.binding(r); binding != nil {
			out.WriteString("---\n")
			if err := document(&out, binding); err != nil {
				return err
			}
		}
	}
	_, err := w.Write(out.Bytes())
	return err
}

// plainName matches a resource that YAML reads as a text without quotes; "*" is none.
var plainName = regexp.MustCompile(`^[a-z][a-z0-9./-]*$`)

// sequence returns the items of a YAML sequence. Those that plain does not match are quoted.
func sequence(items []string, plain *regexp.Regexp) string {
	var texts []string
	for _, item := range items {
		if plain == nil || !plain.MatchString(item) {
			item = strconv.Quote(item)
		}
		texts = append(texts, item)
	}
	return strings.Join(texts, ", ")
}

// List returns the roles and their bindings as a List.
func (a *Access) List() map[string]any {
	items := []any{}
	for _, r := range a.roles() {
		r.object["rules"] = r.rules
		items = append(items, r.object)
		if binding := a.binding(r); binding != nil {
			items = append(items, binding)
		}
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
}

func document(out *bytes.Buffer, object map[string]any) error {
	data, err := yaml.Marshal(object)
	out.Write(data)
	return err
}

// comment writes a comment of lines of at most 100 columns.
func comment(out *bytes.Buffer, indent, text string) {
	line := indent + "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > 100 && line != indent+"#" {
			out.WriteString(line + "\n")
			line = indent + "#"
		}
		line += " " + word
	}
	out.WriteString(line + "\n")
}

func upper(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// Lines returns each right as a text: create, patch jobs.batch (child (InPlace) of
// CompositeController web).
func (a *Access) Lines() []string {
	var lines []string
	for _, g := range a.grants {
		right := rights.Right{Group: g.group, Verbs: g.verbs}
		right.Resource, right.Subresource, _ = strings.Cut(g.resource, "/")
		line := right.String()
		if len(g.names) > 0 {
			line += " " + strings.Join(g.names, ", ")
		}
		if g.namespace != "" {
			line += " in the namespace " + g.namespace
		}
		lines = append(lines, line+" ("+strings.Join(g.why, ", ")+")")
	}
	return lines
}

// Empty reports whether there are no rights, as after Missing finds none.
func (a *Access) Empty() bool { return len(a.grants) == 0 }

// Verbs is the number of verbs of all rights.
func (a *Access) Verbs() (n int) {
	for g := range slices.Values(a.grants) {
		n += len(g.verbs)
	}
	return n
}
