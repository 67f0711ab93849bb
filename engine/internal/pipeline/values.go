package pipeline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxValue bounds a value in a message, in bytes.
const maxValue = 48

// confidential are parts of paths. The text and the numbers at such a path are not shown, because
// they may be a secret or hold one.
var confidential = []string{
	"data", "env", "annotations", "args", "command", "url", "uri", "dsn", "connection", "config",
	"content", "script", "secret", "pass", "pwd", "pin", "token", "key", "credential", "auth", "cert",
	"private", "seed", "salt", "cookie", "session",
}

// credentialMarks are characters of texts that may hold credentials at any path: URLs with a user,
// assignments, PEM.
const credentialMarks = "@=\n"

// shown formats a value for a message; it is empty if the value may be secret.
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
