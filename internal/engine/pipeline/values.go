package pipeline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hookloop/hookloop/internal/engine/merge"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxValue bounds a value in a message, in bytes.
const maxValue = 48

// confidential are parts of paths whose text and numbers are not shown: they may be a secret, or
// hold one.
var confidential = []string{
	"data",
	"env",
	"annotations",
	"args",
	"command",
	"url",
	"uri",
	"dsn",
	"connection",
	"config",
	"content",
	"script",
	"secret",
	"pass",
	"pwd",
	"pin",
	"token",
	"key",
	"credential",
	"auth",
	"cert",
	"private",
	"seed",
	"salt",
	"cookie",
	"session",
}

// credentialMarks are in texts that may hold credentials under any path: URLs with a user,
// assignments, PEM.
const credentialMarks = "@=\n"

// find looks for the difference at the path, or for the first one inside of it.
func (d *diff) find(before, after map[string]any) {
	merge.Differences(before, after, func(path string, old, wanted any) {
		if d.unknown && (path == d.path || strings.HasPrefix(path, d.path+".")) {
			d.path, d.before, d.after, d.unknown = path, old, wanted, false
		}
	})
}

// values are both values, as far as they may be shown; empty where they are not known or may be
// secret.
func (d *diff) values(kind schema.GroupVersionKind) string {
	if d.unknown || kind.Kind == "Secret" {
		return ""
	}
	before, after := shown(d.path, d.before), shown(d.path, d.after)
	if before == "" || after == "" {
		return ""
	}
	return "observed " + before + ", desired " + after
}

// shown is a value as a message may have it; empty where it may be secret.
func shown(path string, value any) string {
	switch v := value.(type) {
	case nil:
		return "nothing"
	case bool:
		return fmt.Sprint(v)
	case map[string]any:
		return "an object"
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	case int64, float64:
		if !isConfidential(path) {
			return fmt.Sprint(v)
		}
	case string:
		if len(v) <= maxValue && !strings.ContainsAny(v, credentialMarks) && !isConfidential(path) {
			return strconv.Quote(v)
		}
	}
	return ""
}

func isConfidential(path string) bool {
	lower := strings.ToLower(path)
	return slices.ContainsFunc(confidential, func(word string) bool { return strings.Contains(lower, word) })
}
