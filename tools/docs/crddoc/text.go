package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// shortened matches the beginnings of paths on the page of hooks.
var shortened = regexp.MustCompile(`^spec\.hooks\.[a-zA-Z]+\.?`)

// title is the heading of the object at a path.
func title(path string) string {
	if short := shortened.ReplaceAllString(path, ""); short != "" {
		return short
	}
	return hookTitle
}

// hookTitle is the heading of the fields that every hook has.
const hookTitle = "hook"

// others names the further paths of a section, each once.
func others(paths []string) string {
	var names []string
	for _, path := range paths {
		name := "`" + title(path) + "`"
		if title(path) == hookTitle {
			name = "`" + path + "`"
		}
		if name != "`"+title(paths[0])+"`" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// sentence returns a comment as one paragraph.
func sentence(comment string) string {
	return strings.Join(strings.Fields(comment), " ")
}

// typeOf returns the type of a field with its limits.
func typeOf(s schema) string {
	name := s.Type
	switch {
	case s.XIntOrString:
		name = "integer or string"
	case s.Type == "array":
		name = "list of " + typeOf(*s.Items.Schema)
	case s.Type == "object" && s.AdditionalProperties != nil:
		name = "map of string"
	}
	if len(s.Enum) > 0 {
		var values []string
		for _, value := range s.Enum {
			if text := strings.Trim(string(value.Raw), `"`); text != "" {
				values = append(values, "`"+text+"`")
			}
		}
		name = strings.Join(values, ", ")
	}
	return name + limits(s)
}

// limits returns the limits of a value or of a list.
func limits(s schema) string {
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf(", %.0f to %.0f", *s.Minimum, *s.Maximum)
	case s.MaxItems != nil && s.MinItems != nil:
		return fmt.Sprintf(", %d to %d", *s.MinItems, *s.MaxItems)
	case s.MaxItems != nil:
		return fmt.Sprintf(", at most %d", *s.MaxItems)
	}
	return ""
}

// documented matches the default that a comment names.
var documented = regexp.MustCompile(`(?:^| )(?:[A-Z][A-Za-z]+ defaults to|Default:) ([^;]+?)(?:\.$|\. |;)`)

// defaultOf returns the default of a field: the schema's, else the one that its comment names.
func defaultOf(of schema, name string) string {
	field := of.Properties[name]
	if slices.Contains(of.Required, name) {
		return "required"
	}
	if field.Default != nil {
		return "`" + strings.Trim(string(field.Default.Raw), `"`) + "`"
	}
	if match := documented.FindStringSubmatch(sentence(field.Description)); match != nil {
		return match[1]
	}
	return "none"
}

// exampleOf returns the first value of a field in the examples.
func (p *page) exampleOf(paths []string, name string) (string, bool) {
	for _, path := range paths {
		for _, e := range p.examples {
			value, found := lookup(e.content, strings.Split(path+"."+name, "."))
			if !found {
				continue
			}
			data, err := json.Marshal(value)
			if err != nil {
				panic(err) // a value that was decoded from YAML
			}
			text := strings.ReplaceAll(string(data), "|", "\\|")
			if unquoted, isText := value.(string); isText && !strings.Contains(unquoted, "\n") {
				text = unquoted
			}
			if len(text) > 60 {
				text = text[:57] + "…"
			}
			return "`" + text + "`", true
		}
	}
	return "", false
}

// lookup returns the first value at a path.
func lookup(value any, path []string) (any, bool) {
	if len(path) == 0 {
		return value, true
	}
	name, isList := strings.CutSuffix(path[0], "[]")
	fields, isObject := value.(map[string]any)
	below, found := fields[name]
	if !isObject || !found {
		return nil, false
	}
	if !isList {
		return lookup(below, path[1:])
	}
	items, _ := below.([]any)
	for _, item := range items {
		if found, ok := lookup(item, path[1:]); ok {
			return found, true
		}
	}
	return nil, false
}

// width is the number of columns of a line of prose.
const width = 110

// fold breaks a paragraph into lines.
func fold(text string) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
		case column+1+len(word) > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
