package render_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/render"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the want sections of testdata")

var port = regexp.MustCompile(`127\.0\.0\.1:\d{4,5}`)

// TestStories renders the files of each story with the options in "args", and compares the output
// or the error with "want". The hook is hook.py of the story, or the one that args name.
func TestStories(t *testing.T) {
	stories, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(stories) == 0 {
		t.Fatalf("got %v and %v, expected stories", stories, err)
	}
	for _, story := range stories {
		t.Run(strings.TrimSuffix(filepath.Base(story), ".txtar"), func(t *testing.T) { tell(t, story) })
	}
}

func tell(t *testing.T, story string) {
	archive, err := txtar.ParseFile(story)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	options := render.Options{Rounds: 20, Timeout: 2 * time.Minute, Ready: render.DefaultReady}
	format := "text"
	want := &archive.Files[len(archive.Files)-1]
	for _, f := range archive.Files[:len(archive.Files)-1] {
		if f.Name == "args" {
			format = parse(t, &options, strings.Fields(string(f.Data)), dir)
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := strings.NewReplacer(dir, "DIR", os.Args[0], "TEST").Replace(output(t, options, format))
	got := port.ReplaceAllString(text, "127.0.0.1:PORT")
	if *update {
		want.Data = []byte(got)
		if err := os.WriteFile(story, txtar.Format(archive), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want.Data), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// parse sets options: -f FILE, --until-settled, --delete, --ready KINDS, --timeout TIME, and the
// hook: --hook-file FILE for functions in Python, --hook-program FILE for a program in Python,
// --hook-grpc for that of this package. Files are those of the story, or of the examples. It
// returns the value of -o.
func parse(t *testing.T, o *render.Options, args []string, dir string) (format string) {
	format = "text"
	path := func(name string) string {
		if rest, found := strings.CutPrefix(name, "examples/"); found {
			return filepath.Join("..", "..", "..", "..", "examples", rest)
		}
		return filepath.Join(dir, name)
	}
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-f":
			i++
			o.Files = append(o.Files, path(args[i]))
		case "--hook-file":
			i++
			o.Command = []string{"python3", filepath.Join("..", "..", "..", "..", "examples", "serve.py"), path(args[i])}
		case "--hook-program":
			i++
			o.Command = []string{"python3", path(args[i])}
		case "--hook-grpc":
			o.Command = []string{"env", asHook + "=grpc", os.Args[0]}
		case "--ready":
			i++
			o.Ready = strings.Split(args[i], ",")
		case "--timeout":
			i++
			var err error
			o.Timeout, err = time.ParseDuration(args[i])
			if err != nil {
				t.Fatal(err)
			}
		case "-o":
			i++
			format = args[i]
		case "--until-settled":
			o.UntilSettled = true
		case "--delete":
			o.Delete = true
		default:
			t.Fatalf("args: %q is not known", args[i])
		}
	}
	return format
}

// output renders, and returns the result in a format, or the error.
func output(t *testing.T, o render.Options, format string) string {
	result, err := render.Render(t.Context(), o)
	var usage *render.UsageError
	switch {
	case errors.As(err, &usage):
		return "usage: " + err.Error() + "\n"
	case err != nil:
		return "error: " + err.Error() + "\n"
	}
	var out bytes.Buffer
	switch format {
	case "json":
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(result)
	case "yaml":
		err = result.WriteYAML(&out)
	default:
		err = result.WriteText(&out, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
