package pipeline

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hookloop/hookloop/engine/merge"
	"github.com/hookloop/hookloop/engine/report"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxValue bounds a value in a message, in bytes.
const maxValue = 48

// confidential are parts of paths whose text is not shown: it may be a secret, or hold one.
var confidential = []string{
	"data", "env", "annotations", "args", "command", "url",
	"secret", "password", "passwd", "token", "key", "credential", "auth", "cert", "private",
}

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
	case bool, int64, float64:
		return fmt.Sprint(v)
	case map[string]any:
		return "an object"
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	case string:
		lower := strings.ToLower(path)
		for _, word := range confidential {
			if strings.Contains(lower, word) {
				return ""
			}
		}
		return strconv.Quote(report.Shorten(v, maxValue))
	default:
		return ""
	}
}
