package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type schema = apiextensions.JSONSchemaProps

// example is a document of a file with examples.
type example struct {
	text    string
	content map[string]any
}

// section is a table of the fields of one object. Equal objects at several paths share one.
type section struct {
	schema schema
	paths  []string // of the first kind that has it
}

// page is a page of the reference.
type page struct {
	title    string
	examples []example
	shared   *page // where the hooks and the endpointConfigs of every kind go
	sections []*section
	problems []error
}

const hookIntroduction = `# Hook

This page lists every field of a hook: how a controller reaches it, with which credentials, and for how long it
waits. All kinds of controllers have the same. [Hooks and their options](../../guides/hooks.md) shows how to use
them. The page is generated from the Go types in [engine/api](../../../engine/api/v1alpha1) by ` + "`make gen`" + `.

`

// introduction is the beginning of a kind's page, with its first example.
func (p *page) introduction(crd *apiextensions.CustomResourceDefinition, file string) string {
	version := crd.Spec.Versions[0]
	names := crd.Spec.Names
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", names.Kind)
	fmt.Fprintf(&b, "This page lists every field of a `%s`. It is generated from the Go types in\n"+
		"[engine/api](../../../engine/api/v1alpha1) by `make gen`; the examples are from\n[%s](%s).\n\n",
		names.Kind, file, file)
	fmt.Fprintf(&b, "| Property | Value |\n|---|---|\n| apiVersion | `%s/%s` |\n| kind | `%s` |\n"+
		"| scope | %s |\n| short names | `%s` |\n\n",
		crd.Spec.Group, version.Name, names.Kind, crd.Spec.Scope, strings.Join(names.ShortNames, "`, `"))
	fmt.Fprintf(&b, "```yaml\n%s\n```\n\n", p.examples[0].text)
	return b.String()
}

// fill collects the sections of a kind, and returns the faults.
func (p *page) fill(crd *apiextensions.CustomResourceDefinition) []error {
	root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, name := range []string{"spec", "status"} {
		p.collect(root.Properties[name], name)
	}
	return p.problems
}

// sharedPath matches the paths of objects that belong on the page of hooks.
var sharedPath = regexp.MustCompile(`^spec\.(hooks\.[a-zA-Z]+|endpointConfigs\[\])(\.|$)`)

// collect adds a section for an object and for each object below it.
func (p *page) collect(s schema, path string) {
	to := p
	if p.shared != nil && sharedPath.MatchString(path) {
		to = p.shared
	}
	to.add(s, path)
	names := slices.Sorted(maps.Keys(s.Properties))
	slices.SortStableFunc(names, hooksFirst)
	for _, name := range names {
		if below, at := objectOf(s.Properties[name], path+"."+name); below != nil {
			p.collect(*below, at)
		}
	}
}

// hooksFirst sorts the field hooks before all others, because its page begins with them.
func hooksFirst(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == "hooks":
		return -1
	case b == "hooks":
		return 1
	}
	return 0
}

// add adds a section, or the path to the section of an equal object.
func (p *page) add(s schema, path string) {
	key := identity(s)
	for _, known := range p.sections {
		if identity(known.schema) == key {
			known.paths = append(known.paths, path)
			return
		}
	}
	p.sections = append(p.sections, &section{schema: s, paths: []string{path}})
}

// identity is equal for objects with the same fields and rules.
func identity(s schema) string {
	s.Description = ""
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // a schema that was decoded from JSON
	}
	return string(data)
}

// objectOf returns the object that a field holds, directly or in a list, and its path.
func objectOf(s schema, path string) (*schema, string) {
	if s.Items != nil && s.Items.Schema != nil {
		s = *s.Items.Schema
		path += "[]"
	}
	if len(s.Properties) == 0 {
		return nil, ""
	}
	return &s, path
}

// write writes the page.
func (p *page) write(file, introduction string) error {
	var b strings.Builder
	b.WriteString(introduction)
	for _, s := range p.sections {
		p.section(&b, s)
	}
	text := strings.TrimSpace(b.String()) + "\n"
	//nolint:gosec // documentation, at a path that the caller names
	return errors.Join(errors.Join(p.problems...), os.WriteFile(file, []byte(text), 0o644))
}

// upstream has short descriptions of the fields of Kubernetes' own types.
var upstream = map[string]string{
	"matchLabels":      "Labels that an object must have, with their values.",
	"matchExpressions": "Requirements that an object must meet, all of them.",
	"operator":         "In, NotIn, Exists or DoesNotExist.",
	"values":           "The values for In and NotIn; empty for Exists and DoesNotExist.",
}

// section writes the table of an object.
func (p *page) section(b *strings.Builder, s *section) {
	fmt.Fprintf(b, "## %s\n\n", title(s.paths[0]))
	text := sentence(s.schema.Description)
	if title(s.paths[0]) == hookTitle {
		text = "How the engine calls a hook, and in which format."
	}
	if text != "" {
		fmt.Fprintf(b, "%s\n\n", fold(text))
	}
	if also := others(s.paths); also != "" {
		fmt.Fprintf(b, "%s\n\n", fold("The same fields are in "+also+"."))
	}
	b.WriteString("| Field | Type | Default | Example | Meaning |\n|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(s.schema.Properties)) {
		p.row(b, s, name)
	}
	b.WriteString("\n")
	for _, rule := range s.schema.XValidations {
		fmt.Fprintf(b, "- %s\n", strings.ReplaceAll(fold("Rule: "+rule.Message+"."), "\n", "\n  "))
	}
	if len(s.schema.XValidations) > 0 {
		b.WriteString("\n")
	}
}

// row writes the row of a field.
func (p *page) row(b *strings.Builder, s *section, name string) {
	field := s.schema.Properties[name]
	value, found := p.exampleOf(s.paths, name)
	object, at := objectOf(field, s.paths[0]+"."+name)
	description := field.Description
	if plain, isUpstream := upstream[name]; isUpstream {
		description = plain
	}
	if description == "" && field.Items != nil {
		description = field.Items.Schema.Description
	}
	if description == "" || !found && strings.HasPrefix(s.paths[0], "spec") {
		p.problems = append(p.problems, fmt.Errorf("%s.%s: expected a comment in engine/api (%t) and an example (%t)",
			s.paths[0], name, description != "", found))
	}
	label := "`" + name + "`"
	if object != nil {
		label = "[" + label + "](" + p.linkTo(*object, at) + ")"
		value = ""
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", label, typeOf(field), defaultOf(s.schema, name), value,
		strings.ReplaceAll(sentence(description), "|", "\\|"))
}

// linkTo returns the link to the section of an object.
func (p *page) linkTo(s schema, path string) string {
	key := identity(s)
	for _, candidate := range []*page{p, p.shared} {
		if candidate == nil {
			continue
		}
		for _, known := range candidate.sections {
			if identity(known.schema) != key {
				continue
			}
			anchor := "#" + regexp.MustCompile(`[^a-z0-9-]`).ReplaceAllString(strings.ToLower(title(known.paths[0])), "")
			if candidate != p {
				return "hook.md" + anchor
			}
			return anchor
		}
	}
	panic("no section for " + path)
}
