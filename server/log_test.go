package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zapcore"
)

// record is what the tests look at in a line.
type record struct {
	Level, Msg, Key, Err string
	TS                   any
	Stacktrace           string
}

// lines logs one line of each kind and returns the output.
func lines(t *testing.T, l Log) string {
	t.Helper()
	var out bytes.Buffer
	log, err := l.logger(&out)
	if err != nil {
		t.Fatal(err)
	}
	log.V(2).Info("verbose", "key", "v2")
	log.V(1).Info("debug", "key", "v1")
	log.Info("info", "key", "v0")
	log.Error(errors.New("broken"), "error", "key", "e")
	return out.String()
}

func decode(t *testing.T, text string) []record {
	t.Helper()
	var out []record
	for line := range strings.Lines(text) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q is no JSON: %v", line, err)
		}
		out = append(out, r)
	}
	return out
}

func TestLogLevels(t *testing.T) {
	for level, want := range map[string][]string{
		"":      {"info", "error"},
		"info":  {"info", "error"},
		"debug": {"debug", "info", "error"},
		"2":     {"verbose", "debug", "info", "error"},
		"error": {"error"},
		"panic": nil,
	} {
		t.Run("level "+level, func(t *testing.T) {
			var got []string
			for _, r := range decode(t, lines(t, Log{Level: level})) {
				got = append(got, r.Msg)
				if r.Stacktrace != "" {
					t.Errorf("%s carries a stack trace, want none by default", r.Msg)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestLogShape(t *testing.T) {
	got := decode(t, lines(t, Log{TimeEncoding: "epoch"}))
	for i := range got {
		if _, ok := got[i].TS.(float64); !ok {
			t.Errorf("ts is %v, want seconds", got[i].TS)
		}
		got[i].TS = nil
	}
	want := []record{{Level: "info", Msg: "info", Key: "v0"}, {Level: "error", Msg: "error", Key: "e", Err: "broken"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLogStacktrace(t *testing.T) {
	for _, r := range decode(t, lines(t, Log{StacktraceLevel: "error"})) {
		if has := r.Stacktrace != ""; has != (r.Level == "error") {
			t.Errorf("%s: stack trace %v", r.Level, has)
		}
		if r.Stacktrace != "" && !strings.Contains(strings.SplitN(r.Stacktrace, "\n", 2)[0], ".lines") {
			t.Errorf("the stack does not start where the line was logged:\n%s", r.Stacktrace)
		}
	}
}

func TestLogDevel(t *testing.T) {
	text := lines(t, Log{Devel: true})
	if strings.HasPrefix(text, "{") || !strings.Contains(text, "\tdebug\tdebug\t{\"key\": \"v1\"}") ||
		strings.Contains(text, "verbose") {
		t.Errorf("want text from level debug on, got:\n%s", text)
	}
}

func TestTimeEncodings(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.UTC)
	for encoding, want := range map[string]string{
		"epoch": "1767323045.6789", "millis": "1767323045678.9", "nano": "1767323045678900000",
		"iso8601": `"2026-01-02T03:04:05.678Z"`, "rfc3339": `"2026-01-02T03:04:05Z"`,
		"rfc3339nano": `"2026-01-02T03:04:05.6789Z"`,
	} {
		line, err := Log{TimeEncoding: encoding}.withDefaults().encoder().EncodeEntry(zapcore.Entry{Time: at}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := line.String(); !strings.Contains(got, `"ts":`+want+`,`) {
			t.Errorf("%s: got %s, want %s", encoding, got, want)
		}
	}
}
