package verifystream

import (
	"bytes"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"
)

//go:embed dialogues
var files embed.FS

const (
	folder      = "dialogues"
	objectsFile = "objects.yaml"
)

// dialogue is one recorded dialogue.
type dialogue struct {
	name string
	// Title is one sentence for the report.
	Title string `json:"title"`
	// Needs are conditions on the Welcome; otherwise the dialogue is skipped.
	Needs needs `json:"needs"`
	// ListenOnly leaves the dialogue out for hooks that dial in.
	ListenOnly bool   `json:"listenOnly"`
	Steps      []step `json:"steps"`

	objects map[string]*object
}

type needs struct {
	Capabilities []string `json:"capabilities"`
	// Calls is the number of calls that the window must allow.
	Calls uint32 `json:"calls"`
}

// step is one step of a dialogue. Exactly one of the fields that are not commented as additions is
// set. Messages are trees in the JSON format of protobuf, in which bytes are hexadecimal.
type step struct {
	// Note explains the step in the report. It is an addition.
	Note string `json:"note"`
	// Hello sends a Hello with these fields and waits for the Welcome.
	Hello map[string]any `json:"hello"`
	// Send sends an EngineMessage.
	Send map[string]any `json:"send"`
	// Unknown is appended to the serialized message of Send. It is an addition.
	Unknown string `json:"unknown"`
	// FragmentBytes splits the message of Send into fragments of this size. It is an addition.
	FragmentBytes int `json:"fragmentBytes"`
	// Expect is the next HookMessage; ExpectAll are the next ones, in any order.
	Expect    map[string]any   `json:"expect"`
	ExpectAll []map[string]any `json:"expectAll"`
	// Ends expects the end of the stream with one of these status codes.
	Ends []string `json:"ends"`
	// Reconnect breaks the stream and opens another one.
	Reconnect bool `json:"reconnect"`
	// Overlap opens another stream and keeps the present one. PreviousEnds expects the end of that.
	Overlap      bool `json:"overlap"`
	PreviousEnds bool `json:"previousEnds"`
	// Burst makes many calls at a time.
	Burst *burst `json:"burst"`
}

// burst is a number of equal calls without a subject.
type burst struct {
	Call map[string]any `json:"call"`
	// First is the ID of the first call.
	First uint64 `json:"first"`
	Count int    `json:"count"`
	// Beyond makes that many calls more than the window allows, and the rest of Count within it.
	Beyond int `json:"beyond"`
}

// object is a recorded object.
type object struct {
	// Hash is the recorded hash.
	Hash string `json:"hash"`
	// Object is the message, in the JSON format of protobuf; its body is text.
	Object map[string]any `json:"object"`

	data []byte
}

// dialogues returns all dialogues in the order of their file names.
func dialogues() ([]*dialogue, error) {
	objects, err := readObjects()
	if err != nil {
		return nil, err
	}
	entries, err := files.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var out []*dialogue
	for _, entry := range entries {
		if entry.Name() == objectsFile {
			continue
		}
		_, name, _ := strings.Cut(strings.TrimSuffix(entry.Name(), ".yaml"), "-")
		d := &dialogue{name: name, objects: objects}
		if err := read(entry.Name(), d); err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

func read(name string, into any) error {
	data, err := files.ReadFile(path.Join(folder, name))
	if err != nil {
		return err
	}
	data, err = yaml.YAMLToJSONStrict(data)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// readObjects returns the recorded objects, and checks their recorded hashes.
func readObjects() (map[string]*object, error) {
	objects := map[string]*object{}
	if err := read(objectsFile, &objects); err != nil {
		return nil, err
	}
	for name, o := range objects {
		m := &hookv1.ObservedObject{}
		body, _ := o.Object["body"].(string)
		rest := map[string]any{}
		for key, value := range o.Object {
			if key != "body" {
				rest[key] = value
			}
		}
		data, err := json.Marshal(rest)
		if err != nil {
			return nil, err
		}
		if err := protojson.Unmarshal(data, m); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", objectsFile, name, err)
		}
		m.Body = []byte(repeated(body))
		o.data, err = (proto.MarshalOptions{Deterministic: true}).Marshal(m)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", objectsFile, name, err)
		}
		if got := hex.EncodeToString(hashOf(o.data)); got != o.Hash {
			return nil, fmt.Errorf("%s: %s: has the hash %s, recorded is %q", objectsFile, name, got, o.Hash)
		}
	}
	return objects, nil
}

// repetition is short for a long text: {{ab*3}} is ababab.
var repetition = regexp.MustCompile(`\{\{([^*{}]+)\*(\d+)\}\}`)

func repeated(text string) string {
	return repetition.ReplaceAllStringFunc(text, func(found string) string {
		match := repetition.FindStringSubmatch(found)
		n, err := strconv.Atoi(match[2])
		if err != nil {
			return found
		}
		return strings.Repeat(match[1], n)
	})
}

// expanded returns a tree with the repetitions of its texts.
func expanded(tree any) any {
	switch tree := tree.(type) {
	case map[string]any:
		out := make(map[string]any, len(tree))
		for key, value := range tree {
			out[key] = expanded(value)
		}
		return out
	case []any:
		out := slices.Clone(tree)
		for i, value := range out {
			out[i] = expanded(value)
		}
		return out
	case string:
		return repeated(tree)
	}
	return tree
}
