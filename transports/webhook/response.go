package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/printable"
	kjson "sigs.k8s.io/json"
)

// maxDepth bounds the nesting of an answer.
const maxDepth = 100

// maxResync bounds resyncAfterSeconds: 10 years, in seconds.
const maxResync = 10 * 365 * 24 * 3600

// The answers as in JSON. Each type has exactly the fields that its question allows, for strict
// mode.
type (
	compositeAnswer struct {
		Status      json.RawMessage   `json:"status"`
		Children    []json.RawMessage `json:"children"`
		ResyncAfter float64           `json:"resyncAfterSeconds"`
		Finalized   bool              `json:"finalized"`
	}
	decoratorAnswer struct {
		Labels      map[string]*string `json:"labels"`
		Annotations map[string]*string `json:"annotations"`
		Status      json.RawMessage    `json:"status"`
		Attachments []json.RawMessage  `json:"attachments"`
		ResyncAfter float64            `json:"resyncAfterSeconds"`
		Finalized   bool               `json:"finalized"`
	}
	customizeAnswer struct {
		Related []*hook.RelatedRule `json:"relatedResources"`
	}
)

// read decodes an answer. The error describes the invalid part.
func read(q *hook.Question, version string, data []byte, strict bool) (*hook.Answer, error) {
	if q.Op == hook.Customize {
		return decodeCustomize(data, strict)
	}
	return readers[q.Kind.Descriptor().ChildrenField](q.Op, version, data, strict)
}

// readers decode the answers with desired objects in a field of this name. The kinds of controllers
// that use the same field have the same answers.
var readers = map[string]func(op hook.Op, version string, data []byte, strict bool) (*hook.Answer, error){
	"children":    readComposite,
	"attachments": readDecorator,
	"outputs":     readMapping,
}

func readComposite(_ hook.Op, version string, data []byte, strict bool) (*hook.Answer, error) {
	if u, ok := readUsual(data, "children"); ok {
		return finish(&hook.Answer{Status: u.status, Children: u.items, Finalized: u.finalized}, u.resyncAfter, &answerV2{})
	}
	var a struct {
		compositeAnswer
		answerV2
	}
	if err := unmarshal(data, strict, target(version, &a, &a.compositeAnswer)); err != nil {
		return nil, err
	}
	return finish(&hook.Answer{Status: a.Status, Children: a.Children, Finalized: a.Finalized}, a.ResyncAfter,
		&a.answerV2)
}

func readDecorator(_ hook.Op, version string, data []byte, strict bool) (*hook.Answer, error) {
	if u, ok := readUsual(data, "attachments"); ok {
		return finish(&hook.Answer{Status: u.status, Children: u.items, Finalized: u.finalized}, u.resyncAfter, &answerV2{})
	}
	var a struct {
		decoratorAnswer
		answerV2
	}
	if err := unmarshal(data, strict, target(version, &a, &a.decoratorAnswer)); err != nil {
		return nil, err
	}
	return finish(&hook.Answer{
		Status: a.Status, Children: a.Attachments, Labels: a.Labels, Annotations: a.Annotations, Finalized: a.Finalized,
	}, a.ResyncAfter, &a.answerV2)
}

// target selects the value to decode into: all fields for v2, the fields of v1 otherwise.
func target(version string, all, v1 any) any {
	if version == "v2" {
		return all
	}
	return v1
}

func decodeCustomize(data []byte, strict bool) (*hook.Answer, error) {
	var a customizeAnswer
	if err := unmarshal(data, strict, &a); err != nil {
		return nil, err
	}
	answer := &hook.Answer{}
	for i, rule := range a.Related {
		if rule == nil {
			return nil, fmt.Errorf("relatedResources[%d]: got null, expected an object", i)
		}
		answer.Related = append(answer.Related, *rule)
	}
	return answer, nil
}

// finish validates the fields that all answers share.
func finish(a *hook.Answer, resyncAfter float64, more *answerV2) (*hook.Answer, error) {
	if string(a.Status) == "null" {
		a.Status = nil
	}
	if math.IsNaN(resyncAfter) || resyncAfter < 0 || resyncAfter > maxResync {
		return nil, fmt.Errorf("resyncAfterSeconds is %v, expected a number of seconds from 0 to %d", resyncAfter, maxResync)
	}
	a.ResyncAfter = time.Duration(resyncAfter * float64(time.Second))
	return a, more.read(a)
}

// unmarshal decodes one JSON object and rejects trailing data. In strict mode it rejects unknown
// and duplicate fields.
func unmarshal(data []byte, strict bool, target any) error {
	if object.Deeper(data, maxDepth) {
		return fmt.Errorf("the answer is nested deeper than %d levels", maxDepth)
	}
	trimmed := bytes.TrimLeft(data, " \t\r\n")
	if len(trimmed) == 0 {
		return errors.New("the answer is empty, expected a JSON object")
	}
	if trimmed[0] != '{' {
		return fmt.Errorf("the answer begins with %q, expected a JSON object",
			printable.Excerpt(trimmed[:min(len(trimmed), 20)]))
	}
	if !strict {
		return invalid(json.Unmarshal(data, target))
	}
	faults, err := kjson.UnmarshalStrict(data, target, kjson.DisallowUnknownFields, kjson.DisallowDuplicateFields)
	if err == nil && len(faults) > 0 {
		err = faults[0]
	}
	return invalid(err)
}

func invalid(err error) error {
	if err == nil {
		return nil
	}
	// The error may quote a name of any length.
	return errors.New("the answer is not valid: " + printable.Excerpt([]byte(object.Explain(err).Error())))
}
