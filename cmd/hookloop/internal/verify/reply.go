package verify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hookloop/hookloop/engine/hook"
	kjson "sigs.k8s.io/json"
)

// reply holds what came back after a question.
type reply struct {
	// took is how long the call lasted.
	took time.Duration
	// answer is nil if none came, or none that could be decoded.
	answer *hook.Answer
	// failure is the error that the hook returned, or nil if it answered.
	failure *failure
	// faults lists what is wrong with the encoding.
	faults []fault
	// unreachable says why the hook could not be asked.
	unreachable string
	// timedOut is true if no answer came in time. endless is true if the call was still open a while
	// after its deadline.
	timedOut, endless bool
}

// failure holds the status of a failed call.
type failure struct {
	// code is a gRPC code or an HTTP status; empty if the call ended without one.
	code, message string
	// missing is true if the hook does not serve the operation.
	missing bool
	// vague explains why the code is none to act on; empty if it is one.
	vague string
}

func (f *failure) String() string {
	if f.code == "" {
		return "no status: " + f.message
	}
	return fmt.Sprintf("%s: %q", f.code, shortened(f.message))
}

// fault names the rule that is broken, and what came.
type fault struct{ id, got string }

func (r *reply) fault(id, format string, args ...any) {
	r.faults = append(r.faults, fault{id, fmt.Sprintf(format, args...)})
}

// has reports whether a rule about the encoding is broken.
func (r *reply) has(id string) bool {
	return slices.ContainsFunc(r.faults, func(f fault) bool { return f.id == id })
}

// byteOrderMark may precede a text in UTF-8. JSON excludes it (RFC 8259, section 8.1).
var byteOrderMark = []byte("\xef\xbb\xbf")

// checkJSON checks the encoding of one JSON object. It reports whether it can be decoded.
func (r *reply) checkJSON(where string, data []byte) bool {
	if !utf8.Valid(data) {
		at := invalidAt(data)
		r.fault(ruleNotUTF8, "%s has the byte %#x at %d, near %q", where, data[at], at, data[max(0, at-20):at])
		return json.Valid(data)
	}
	if bytes.HasPrefix(data, byteOrderMark) {
		r.fault(ruleMalformed, "%s begins with a byte order mark", where)
		return false
	}
	var value any
	faults, err := kjson.UnmarshalStrict(data, &value, kjson.DisallowDuplicateFields)
	if err != nil {
		r.fault(ruleMalformed, "%s is not JSON: %v; it begins with %q", where, err, data[:min(len(data), 40)])
		return false
	}
	if _, ok := value.(map[string]any); !ok {
		r.fault(ruleMalformed, "%s begins with %q, which is no JSON object", where, data[:min(len(data), 40)])
		return false
	}
	if len(faults) > 0 {
		r.fault(ruleDuplicateKey, "%s: %v", where, faults[0])
	}
	return true
}

// invalidAt returns the place of the first byte that is not UTF-8.
func invalidAt(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return 0
}

// texts are the JSON texts of an answer, with names for messages.
func (r *reply) texts(childrenField string) map[string][]byte {
	all := map[string][]byte{}
	if r.answer == nil {
		return all
	}
	if len(r.answer.Status) > 0 {
		all["status"] = r.answer.Status
	}
	for i, child := range r.answer.Children {
		all[fmt.Sprintf("%s[%d] %s", childrenField, i, childName(child))] = child
	}
	patch := map[string]*string{}
	for key, value := range r.answer.Labels {
		patch["labels."+key] = value
	}
	for key, value := range r.answer.Annotations {
		patch["annotations."+key] = value
	}
	for _, c := range r.answer.Conditions {
		patch["conditions."+c.Type] = &c.Message
	}
	for key, value := range patch {
		if value != nil {
			all[key], _ = json.Marshal(*value) // a text always marshals
		}
	}
	return all
}

// childName names a child as far as it can be read.
func childName(raw []byte) string {
	var child struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if json.Unmarshal(raw, &child) != nil || child.Kind == "" {
		return ""
	}
	name := strings.TrimPrefix(child.Metadata.Namespace+"/"+child.Metadata.Name, "/")
	return fmt.Sprintf("%s.%s %q", child.Kind, child.APIVersion, name)
}
