package memapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// step is one request of a story.
type step struct {
	// do is the method and the path; {ns} is replaced by the story's namespace.
	do string
	// body is the body; kind is the media type, "" for JSON, or merge, json, strategic, apply.
	body, kind string
	// as names the object of the answer: later steps have {uid:NAME} and {rv:NAME}.
	as string
	// await repeats the request against the real API server until its answer is the same, because
	// its controllers need time.
	await bool
	// ignore are fields that only a real API server sets, as paths from the object.
	ignore []string
	// codeOnly compares nothing but the status codes.
	codeOnly bool
}

var mediaTypes = map[string]string{
	"": "application/json", "merge": "application/merge-patch+json", "json": "application/json-patch+json",
	"strategic": "application/strategic-merge-patch+json", "apply": "application/apply-patch+yaml",
	"text": "text/plain",
}

// player sends the steps of a story to one server.
type player struct {
	t         *testing.T
	host      string
	client    *http.Client
	namespace string
	names     map[string]string // values of {uid:…} and {rv:…}
	ordinals  map[string]string // of UIDs and resourceVersions
}

func newPlayer(t *testing.T, config *rest.Config, namespace string) *player {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return &player{
		t: t, host: config.Host, client: client, namespace: namespace,
		names: map[string]string{}, ordinals: map[string]string{},
	}
}

func (p *player) fill(text string) string {
	text = strings.ReplaceAll(text, "{ns}", p.namespace)
	for name, value := range p.names {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	return text
}

// reply is a normalised answer.
type reply struct {
	Code     int
	Warnings []string
	Body     any
}

// play sends one step and returns the normalised answer.
func (p *player) play(s step) reply {
	p.t.Helper()
	method, path, _ := strings.Cut(p.fill(s.do), " ")
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.host+path, strings.NewReader(p.fill(s.body)))
	if err != nil {
		p.t.Fatal(err)
	}
	if s.body != "" {
		r.Header.Set("Content-Type", mediaTypes[s.kind])
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "tester/1.0")
	answer, err := p.client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	out := reply{Code: answer.StatusCode, Warnings: answer.Header.Values("Warning")}
	if s.codeOnly {
		return out
	}
	if err := json.Unmarshal(data, &out.Body); err != nil {
		out.Body = string(data)
		return out
	}
	p.capture(s.as, out.Body)
	for _, path := range s.ignore {
		drop(out.Body, strings.Split(path, "."))
	}
	out.Body = p.normalise("", out.Body)
	return out
}

// capture remembers the UID and the resourceVersion of an object.
func (p *player) capture(name string, body any) {
	content, _ := body.(map[string]any)
	metadata, _ := content["metadata"].(map[string]any)
	if name == "" || metadata == nil {
		return
	}
	for short, field := range map[string]string{
		"uid": "uid", "rv": "resourceVersion", "continue": "continue", "name": "name",
	} {
		if value, ok := metadata[field].(string); ok {
			p.names[short+":"+name] = value
		}
	}
}

// drop removes a field; the path continues in all elements of a list.
func drop(value any, path []string) {
	switch v := value.(type) {
	case map[string]any:
		if len(path) == 1 {
			delete(v, path[0])
			return
		}
		drop(v[path[0]], path[1:])
	case []any:
		for _, item := range v {
			drop(item, path[1:])
		}
	}
}

var (
	uidPattern     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	versionPattern = regexp.MustCompile(`(resourceVersion\\*":\\*")\d+`)
	timePattern    = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

// ordinal replaces a value that differs between servers by the order in which it appears.
func (p *player) ordinal(kind, value string) string {
	known, ok := p.ordinals[kind+value]
	if !ok {
		known = fmt.Sprintf("%s-%d", kind, len(p.ordinals)+1)
		p.ordinals[kind+value] = known
	}
	return known
}

// normalise replaces what differs between two servers.
func (p *player) normalise(field string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		maskListVersion(v)
		for _, k := range slices.Collect(maps.Keys(v)) {
			inner := v[k]
			if k == "resourceVersion" || k == "continue" || k == "uid" || k == "metadata" {
				continue
			}
			delete(v, k)
			v[p.mask(k)] = p.normalise(k, inner)
		}
		for _, k := range []string{"metadata", "uid", "resourceVersion", "continue"} {
			if inner, ok := v[k]; ok {
				v[k] = p.normalise(k, inner)
			}
		}
	case []any:
		for i, inner := range v {
			v[i] = p.normalise(field, inner)
		}
		if field == "managedFields" { // a server orders them by their times, in seconds
			slices.SortFunc(v, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	case string:
		switch {
		case field == "resourceVersion" && v != "" && v != "0" && v != "VERSION":
			return p.ordinal("version", v)
		case field == "continue" && v != "":
			return "token"
		}
		v = p.mask(v)
		for name, rv := range p.names {
			if strings.HasPrefix(name, "rv:") {
				v = strings.ReplaceAll(v, "("+rv+")", "("+p.ordinal("version", rv)+")")
			}
		}
		return versionPattern.ReplaceAllString(timePattern.ReplaceAllString(v, "TIME"), "${1}VERSION")
	}
	return value
}

// maskListVersion masks the resourceVersion of a list. It is that of the last write to the server,
// and the controllers of a real one write at any time.
func maskListVersion(body map[string]any) {
	metadata, _ := body["metadata"].(map[string]any)
	version, _ := metadata["resourceVersion"].(string)
	if _, list := body["items"]; list && version != "" && version != "0" {
		metadata["resourceVersion"] = "VERSION"
	}
}

// mask replaces UIDs and the namespace in a text.
func (p *player) mask(text string) string {
	text = strings.ReplaceAll(text, p.namespace, "{ns}")
	return uidPattern.ReplaceAllStringFunc(text, func(uid string) string { return p.ordinal("uid", uid) })
}

// text returns a reply as indented JSON.
func (r reply) text() string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(r) // maps and strings
	return out.String()
}

// awaitTimeout is the time that the controllers of the real API server get.
const awaitTimeout = 2 * time.Minute

// await asks until a condition holds, and reports whether it did.
func await(t *testing.T, holds func() bool) bool {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, awaitTimeout, true,
		func(context.Context) (bool, error) { return holds(), nil })
	return err == nil
}
