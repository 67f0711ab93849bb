// Package answers holds the rules for a hook's answer that are data: how many conditions it may
// have, which of them belong to the engine, what a reason looks like, which fields exclude each
// other. The engine and the test helper of the Go SDK read them from [Rules], so that a hook's test
// refuses what the engine would refuse. tools/gen.sh copies the data, rules.json, into the SDKs for
// Python and TypeScript.
//
// To change a limit, a pattern or a name, change rules.json, run tools/gen.sh, and add a case to
// sdk/testdata/answers.json. A rule that needs code, such as the search for circles of
// dependencies, is written in plan and in each SDK.
package answers

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
)

//go:embed rules.json
var data []byte

// Rules are the rules of rules.json. They must not be changed.
var Rules = decode()

// Table is the form of rules.json.
type Table struct {
	// About tells readers of the file what it is for.
	About  []string
	Limits struct {
		// Remarks limits the conditions of an answer, its events, and its results.
		Remarks int
		// Requirements limits the rules for related objects.
		Requirements int
		// Prefix limits the bytes before the slash of a label's or annotation's key.
		Prefix int
	}
	Formats struct {
		// Reason is the format of the reason of a condition, an event or a result.
		Reason Format
		// Group is the format of the name of a related rule. It has no dot, so that hooks can
		// distinguish groups from resources (configmaps.v1).
		Group Format
		// Name and Prefix are the formats of the parts of a label's or annotation's key. Go code uses
		// Kubernetes' own check instead.
		Name, Prefix Format
	}
	// Reserved lists the types of conditions and the annotations that only the engine may write.
	Reserved struct{ Conditions, Annotations []string }
	// Marks are the annotations that name the controller of an attachment or output, and the input
	// of an output.
	Marks       struct{ Decorator, MapController, MapKey Mark }
	RelatedRule struct {
		// Required says what a missing field of a rule should be.
		Required struct{ APIVersion, Resource string }
		// Exclusive lists pairs of fields. A rule may set one of each pair.
		Exclusive [][2]string
	}
}

// Format is a pattern, and the words that tell a user what it matches.
type Format struct {
	Pattern  *regexp.Regexp
	Expected string
}

// Mark is an annotation that tells what an object belongs to.
type Mark struct {
	// Key is the annotation's key. For MapKey it is a label's key, too, with a hash as value.
	Key string
	// Names is the kind of thing that the annotation names, in words.
	Names string
	// List is the only list of desired objects that may have the mark: attachments or outputs.
	List string
}

func decode() (t Table) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&t); err != nil {
		panic(fmt.Sprintf("rules.json: %v", err))
	}
	return t
}

// AllMarks returns the marks, in the order in which they are checked.
func (t *Table) AllMarks() []Mark {
	return []Mark{t.Marks.Decorator, t.Marks.MapController, t.Marks.MapKey}
}

// CheckNames checks the fields of a rule for related objects that name it and its resource. The
// error says which one is wrong, and what it should be.
func (t *Table) CheckNames(name, apiVersion, resource string) error {
	switch {
	case name != "" && !t.Formats.Group.Pattern.MatchString(name):
		return fmt.Errorf("name is not usable; expected %s", t.Formats.Group.Expected)
	case apiVersion == "":
		return fmt.Errorf("apiVersion is missing; expected %s", t.RelatedRule.Required.APIVersion)
	case resource == "":
		return fmt.Errorf("resource is missing; expected %s", t.RelatedRule.Required.Resource)
	}
	return nil
}

// CheckExclusive returns an error if a rule for related objects sets two fields that exclude each
// other. isSet tells which of the rule's fields are set.
func (t *Table) CheckExclusive(isSet map[string]bool) error {
	for _, pair := range t.RelatedRule.Exclusive {
		if isSet[pair[0]] && isSet[pair[1]] {
			return fmt.Errorf("%s and %s are both set; expected one of them", pair[0], pair[1])
		}
	}
	return nil
}
