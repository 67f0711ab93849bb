package integration

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

var update = flag.Bool("update", false, "rewrite testdata/public; understand each difference before you commit")

// golden compares text with a file in testdata/public, or rewrites the file.
func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", "public", name)
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		writePages(t)
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text, "\n")); diff != "" {
		t.Errorf(
			"%s: users depend on this; if the change is meant, rewrite the file with -update (-want +got):\n%s",
			file,
			diff,
		)
	}
}

// goldenFolder compares texts with the files of a folder in testdata/public, or rewrites the folder.
// A file without a text is a fault.
func goldenFolder(t *testing.T, folder string, texts map[string]*strings.Builder) {
	t.Helper()
	dir := filepath.Join("testdata", "public", folder)
	if *update {
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o750)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		golden(t, filepath.Join(folder, name), texts[name].String())
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if texts[file.Name()] == nil {
			t.Errorf("%s: the run has no such story; delete the file", filepath.Join(dir, file.Name()))
		}
	}
}

// writePages writes the pages of the reference that are made from these files.
func writePages(t *testing.T) {
	t.Helper()
	for _, page := range []string{"metrics", "flags"} {
		text, err := exec.Command(filepath.Join(cluster.Root(), "tools", "surface.sh"), page).Output()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(cluster.Root(), "docs", "reference", page+".md"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// varying are the parts of the texts that differ from run to run.
var varying = []struct {
	pattern *regexp.Regexp
	replace string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<uid>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "<time>"},
	{regexp.MustCompile(`("?resourceVersion"?: )"\d+"`), "$1<version>"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:<port>"},
	{regexp.MustCompile(`\b[0-9a-f]{32,64}\b`), "<hash>"},
}

// normalise replaces the names of the kit and everything else that differs from run to run.
func normalise(k *kit.Kit, text string) string {
	text = strings.ReplaceAll(text, k.Name, "$NAME")
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.replace)
	}
	return text
}

// lines joins a set of lines to a text.
func lines(set map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(set)), "\n") + "\n"
}

// helpTexts returns the help texts of the commands, with their flags.
func helpTexts(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for _, args := range [][]string{
		{"--help"}, {"dev", "--help"}, {"serve", "--help"}, {"trace", "--help"}, {"version", "--help"},
	} {
		out, err := exec.CommandContext(t.Context(), serve.Program("hookloop"), args...).
			Output()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "$ hookloop %s\n%s\n", strings.Join(args, " "), out)
	}
	return text.String()
}

// metricFamilies returns a line for each family of a scrape: name, type, names of the labels, help.
// It leaves out the families of the Go runtime and of the process, and
// rest_client_request_retries_total, which exists only after a retry.
func metricFamilies(scrape string) string {
	help := map[string]string{}
	kinds := map[string]string{}
	labels := map[string]map[string]bool{}
	for line := range strings.Lines(scrape) {
		line = strings.TrimSpace(line)
		fields := strings.SplitN(line, " ", 4)
		switch {
		case strings.HasPrefix(line, "# HELP "):
			help[fields[2]] = fields[3]
		case strings.HasPrefix(line, "# TYPE "):
			kinds[fields[2]], labels[fields[2]] = fields[3], map[string]bool{}
		default:
			name, rest, _ := strings.Cut(line, "{")
			addLabels(labels[familyOf(name, kinds)], rest)
		}
	}
	families := map[string]bool{}
	for name, kind := range kinds {
		if !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") &&
			name != "rest_client_request_retries_total" {
			names := strings.Join(slices.Sorted(maps.Keys(labels[name])), ", ")
			families[fmt.Sprintf("%s %s {%s}: %s", name, kind, names, help[name])] = true
		}
	}
	return lines(families)
}

var labelName = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="(?:[^"\\]|\\.)*"`)

func addLabels(set map[string]bool, rest string) {
	for _, match := range labelName.FindAllStringSubmatch(rest, -1) {
		if set != nil {
			set[match[1]] = true
		}
	}
}

// familyOf returns the family of a series, which has a suffix if the family is a histogram or a
// summary.
func familyOf(series string, kinds map[string]string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if family, ok := strings.CutSuffix(series, suffix); ok && kinds[family] != "" {
			return family
		}
	}
	return series
}

// unlisted are messages that logLines leaves out.
var unlisted = []string{
	"ready",
	"the controller is gone: its finalizer is removed",
	"Attempting to acquire leader lease...",
	"Successfully acquired lease",
}

// logLines returns the messages of an engine's log with their keys. The log is JSON. It leaves out
// lines that depend on the controllers of other tests ("ready", and the removal of a deleted
// controller's finalizer), and those of libraries: gRPC's are no JSON, and client-go's leader
// election has its own words.
func logLines(t *testing.T, log string) string {
	t.Helper()
	set := map[string]bool{}
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Errorf("the engine's log has a line that is no JSON: %s", line)
			continue
		}
		text, _ := fields["msg"].(string)
		if slices.Contains(unlisted, text) {
			continue
		}
		message := fmt.Sprintf("%v %s", fields["level"], text)
		delete(fields, "msg")
		delete(fields, "level")
		set[fmt.Sprintf("%s [%s]", message, strings.Join(slices.Sorted(maps.Keys(fields)), " "))] = true
	}
	return lines(set)
}

// spanSink is an OTLP collector that keeps names of spans, and the names of their attributes and
// events. It leaves out those of other tests' controllers, which every engine skips.
type spanSink struct {
	url string
	// kit is the test's own name.
	kit string

	mu    sync.Mutex // guards spans
	spans map[string]map[string]bool
}

func newSpanSink(k *kit.Kit) *spanSink {
	k.Helper()
	s := &spanSink{kit: k.Name, spans: map[string]map[string]bool{}}
	server := httptest.NewServer(s)
	k.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// ServeHTTP records an export request.
func (s *spanSink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var request collectorv1.ExportTraceServiceRequest
	if err := proto.Unmarshal(data, &request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				if name := kitName.FindString(span.GetName()); name == "" || name == s.kit {
					s.add(span)
				}
			}
		}
	}
}

// kitName is the name of a Kit.
var kitName = regexp.MustCompile(`\bt[0-9a-f]{6}\b`)

// instances are the parts of spans' names that name one resource or controller.
var instances = []struct {
	pattern *regexp.Regexp
	replace string
}{
	{regexp.MustCompile(`[a-z]+\.t[0-9a-f]{6}\.example\.com`), "KIND"},
	{regexp.MustCompile(`t[0-9a-f]{6}-[a-z]+`), "NAME"},
}

// add merges spans that differ by their instance only. It leaves out errors, which depend on
// timing.
func (s *spanSink) add(span *tracev1.Span) {
	name := span.GetName() + " (" + strings.ToLower(strings.TrimPrefix(span.GetKind().String(), "SPAN_KIND_")) + ")"
	for _, i := range instances {
		name = i.pattern.ReplaceAllString(name, i.replace)
	}
	if s.spans[name] == nil {
		s.spans[name] = map[string]bool{}
	}
	addKeys(s.spans[name], "", span.GetAttributes())
	for _, event := range span.GetEvents() {
		addKeys(s.spans[name], "event "+event.GetName()+": ", event.GetAttributes())
	}
	delete(s.spans[name], "error.type")
}

func addKeys(set map[string]bool, prefix string, attributes []*commonv1.KeyValue) {
	for _, a := range attributes {
		set[prefix+a.GetKey()] = true
	}
}

// text returns the names of the spans, each with the names of its attributes.
func (s *spanSink) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.spans)) {
		text.WriteString(name + "\n")
		for _, attribute := range slices.Sorted(maps.Keys(s.spans[name])) {
			text.WriteString("  " + attribute + "\n")
		}
	}
	return text.String()
}
