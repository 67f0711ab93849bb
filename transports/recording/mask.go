package recording

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// minReplaced is the length in bytes from which a Secret's value is masked wherever it occurs.
// Shorter values are masked only in the Secret itself, because they occur in many other texts.
const minReplaced = 6

// masks replaces values in Secrets by masked-1, masked-2, and so on. Equal values get equal masks,
// so that a hook that copies a Secret answers a masked question in the same way.
type masks struct {
	// names maps values to masks.
	names map[string]string
	texts *strings.Replacer
}

// alreadyMasked matches a mask. Masks are kept when a masked question is asked again.
var alreadyMasked = regexp.MustCompile(`^masked-[0-9]+$`)

// newMasks finds the values in Secrets, in a fixed order.
func newMasks(values ...map[string]any) *masks {
	m := &masks{names: map[string]string{}}
	for _, v := range values {
		if v != nil {
			m.find(v)
		}
	}
	secrets := slices.SortedFunc(maps.Keys(m.names), func(a, b string) int { // a value may contain another one
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	var pairs []string
	for _, secret := range secrets {
		if len(secret) < minReplaced {
			continue
		}
		for _, encode := range encodings {
			pairs = append(pairs, encode(secret), encode(m.names[secret]))
		}
	}
	m.texts = strings.NewReplacer(pairs...)
	return m
}

// encodings lists how a text may contain a Secret's value: as it is, in base64, quoted in JSON or
// YAML (with and without escapes for HTML), and in a URL.
var encodings = []func(string) string{
	func(text string) string { return text },
	encoded,
	func(text string) string { return base64.URLEncoding.EncodeToString([]byte(text)) },
	func(text string) string { return inJSON(text, true) },
	func(text string) string { return inJSON(text, false) },
	url.QueryEscape,
	url.PathEscape,
}

// inJSON returns the text as it stands between quotes in JSON.
func inJSON(text string, html bool) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(html)
	_ = encoder.Encode(text) // a text always encodes
	return b.String()[1 : b.Len()-len("\"\n")]
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// find collects the values in Secrets.
func (m *masks) find(value any) {
	switch v := value.(type) {
	case map[string]any:
		if isSecret(v) {
			m.findIn(v)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			m.find(v[key])
		}
	case []any:
		for _, item := range v {
			m.find(item)
		}
	}
}

// isSecret reports whether an object is a Secret. A Secret without an apiVersion is an invalid
// answer, but we must mask it too.
func isSecret(m map[string]any) bool {
	version, set := m["apiVersion"]
	return m["kind"] == "Secret" && (version == "v1" || !set)
}

func (m *masks) findIn(secret map[string]any) {
	for _, field := range []string{"data", "stringData"} {
		values, _ := secret[field].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			m.name(plain(field, asText(values[key])))
		}
	}
}

// asText returns a Secret's value as text. A hook may return a number by mistake.
func asText(value any) string {
	if text, ok := value.(string); ok || value == nil {
		return text
	}
	return fmt.Sprint(value)
}

// plain returns a Secret's value decoded.
func plain(field, text string) string {
	if field == "data" {
		if data, err := base64.StdEncoding.DecodeString(text); err == nil {
			return string(data)
		}
	}
	return text
}

// name returns the mask for a value.
func (m *masks) name(secret string) string {
	name, known := m.names[secret]
	switch {
	case known:
	case secret == "":
		return ""
	case alreadyMasked.MatchString(secret):
		name = secret
	default:
		name = fmt.Sprintf("masked-%d", len(m.names)+1)
	}
	m.names[secret] = name
	return name
}

// mask masks a value. It modifies the value.
func (m *masks) mask(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if isSecret(v) {
			m.maskSecret(v)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			inner := v[key]
			if text, ok := inner.(string); ok && key == "url" {
				inner = withoutUser(text)
			}
			delete(v, key)
			v[m.text(key)] = m.mask(inner)
		}
	case []any:
		for i, item := range v {
			v[i] = m.mask(item)
		}
	case string:
		return m.text(v)
	}
	return value
}

// text masks values that occur in a text.
func (m *masks) text(text string) string { return m.texts.Replace(text) }

func (m *masks) maskSecret(secret map[string]any) {
	for _, field := range []string{"data", "stringData"} {
		values, _ := secret[field].(map[string]any)
		for key, value := range values {
			text := asText(value)
			values[key] = m.name(plain(field, text))
			if field == "data" {
				values[key] = encoded(m.name(plain(field, text)))
			}
		}
	}
	metadata, _ := secret["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	const applied = "kubectl.kubernetes.io/last-applied-configuration" // it contains the values, too
	if _, there := annotations[applied]; there {
		annotations[applied] = "masked"
	}
}

// maskQueries masks query values in a controller's URLs, which may be credentials.
func maskQueries(controller any) {
	switch v := controller.(type) {
	case map[string]any:
		for key, inner := range v {
			text, isText := inner.(string)
			u, err := url.Parse(text)
			if !isText || key != "url" || err != nil || u.RawQuery == "" {
				maskQueries(inner)
				continue
			}
			values := u.Query()
			for name := range values {
				values.Set(name, "masked")
			}
			u.RawQuery = values.Encode()
			v[key] = u.String()
		}
	case []any:
		for _, item := range v {
			maskQueries(item)
		}
	}
}

// withoutUser removes user and password from a URL.
func withoutUser(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return text
	}
	u.User = nil
	return u.String()
}
