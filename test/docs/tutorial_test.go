package docs

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kubelet"
	"github.com/hookloop/hookloop/test/serve"
)

var update = flag.Bool("update", false, "write the real output into the pages; look at the difference")

// TestTutorial follows the tutorial from its first page to its last in one shell: it writes the
// files, runs the commands, and compares their output.
func TestTutorial(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(cluster.Root(), "docs", "tutorial", "[1-9]-*.md"))
	if err != nil || len(pages) != 9 {
		t.Fatalf("%d pages, %v; expected 9 steps", len(pages), err)
	}
	cluster.NeedNewest(t, cluster.Start(t), "the pages show the output of the newest kubectl")
	r := newReader(t)
	for _, page := range pages {
		done := t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) { r.follow(t, page) })
		if !done && !*update {
			t.Fatal("the later steps need this one")
		}
	}
}

// TestFiveMinutes follows the page that needs no installation of Hookloop.
func TestFiveMinutes(t *testing.T) {
	newReader(t).follow(t, filepath.Join(cluster.Root(), "docs", "tutorial", "five-minutes.md"))
}

// reader follows the pages.
type reader struct {
	dir   string
	shell *session
	// ports replaces the ports of the pages by free ones; real replaces them in an output.
	ports, real *strings.Replacer
}

// TestMain runs the tests, which share a control plane.
func TestMain(m *testing.M) { cluster.Main(m) }

// newReader starts a shell, and a replacement for kubelets on the control plane.
func newReader(t *testing.T) *reader {
	t.Helper()
	c := cluster.Start(t)
	kubectl, err := c.InstallKubectl()
	if err != nil {
		t.Fatal(err)
	}
	serveKubelet(t, c)
	ports, err := cluster.FreePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	var there, back []string
	for i, shown := range []string{"8080", "8081", "9999"} {
		free := fmt.Sprint(ports[i])
		there = append(there, shown, free)
		back = append(back, free, shown)
	}
	r := &reader{dir: t.TempDir(), ports: strings.NewReplacer(there...), real: strings.NewReplacer(back...)}
	bin := t.TempDir()
	program := fmt.Sprintf("#!/bin/bash\n[ \"$1\" != serve ] || set -- \"$@\" --health-probe-bind-address=127.0.0.1:%d"+
		" --metrics-address=127.0.0.1:%d\nexec %s \"$@\"\n", ports[1], ports[2], serve.Program("hookloop"))
	if err := os.WriteFile(filepath.Join(bin, "hookloop"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	r.shell, err = newSession(t.Context(), r.dir, append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(),
		"PYTHONDONTWRITEBYTECODE=1", "REPO="+cluster.Root(), "PYTHON=/usr/bin/python3", "PIP_NO_INDEX=1",
		"PATH="+strings.Join([]string{bin, kubectl, os.Getenv("PATH")}, ":")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.shell.close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// serveKubelet makes Pods ready until the test ends.
func serveKubelet(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		fault := func(err error) { fmt.Fprintln(os.Stderr, "kubelet:", err) }
		if err := kubelet.Run(ctx, c.Admin(), fault); err != nil {
			fault(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
}

// follow writes the files of a page, and runs its commands.
func (r *reader) follow(t *testing.T, page string) {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, b := range blocks(text) {
		if name, isFile := b.file(); isFile {
			content := r.ports.Replace(strings.Join(b.lines, "\n") + "\n")
			if err := os.WriteFile(filepath.Join(r.dir, filepath.Base(name)), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if b.language != "console" {
			continue
		}
		for _, c := range b.commands() {
			got, ok := r.try(t, c)
			if ok {
				continue
			}
			if !*update {
				t.Fatalf("%s:%d: $ %s\nprints:\n%s\nthe page has:\n%s\nengine.log ends with:\n%s", filepath.Base(page),
					c.line, c.text, strings.Join(got, "\n"), strings.Join(c.want, "\n"), r.log())
			}
			shown := "$ " + strings.ReplaceAll(c.text, "\n", "\n> ") + "\n"
			text = strings.Replace(text, shown+joined(c.want), shown+joined(got), 1)
		}
	}
	if *update && text != string(data) {
		if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// joined returns lines as text.
func joined(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// try runs a command until its output is the documented one, for commands that only read, or once.
func (r *reader) try(t *testing.T, c command) ([]string, bool) {
	t.Helper()
	limit := deadline
	if *update {
		limit = 5 * time.Second
	}
	for end := time.Now().Add(limit); ; {
		lines, status, err := r.shell.run(r.ports.Replace(c.text))
		if err != nil {
			t.Fatalf("line %d: $ %s\n%s\n%v", c.line, c.text, strings.Join(lines, "\n"), err)
		}
		for i := range lines {
			lines[i] = strings.TrimRight(r.real.Replace(lines[i]), " ")
		}
		if matches(c.want, lines) {
			return lines, true
		}
		if !isRead(c.text) || time.Now().After(end) {
			return append(lines, "(status "+status+")")[:len(lines)], false
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// log returns the end of the engine's log.
func (r *reader) log() string {
	data, err := os.ReadFile(filepath.Join(r.dir, "engine.log"))
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-2000):])
}
