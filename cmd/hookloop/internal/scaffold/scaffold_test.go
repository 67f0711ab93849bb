package scaffold_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/scaffold"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// checkout is the root of the repository.
var checkout = filepath.Join("..", "..", "..", "..")

// options returns good options of a project in a new folder.
func options(t *testing.T) scaffold.Options {
	return scaffold.Options{
		Name: "web-shop", Language: "go", Kind: "composite", Dir: filepath.Join(t.TempDir(), "web-shop"), SDK: checkout,
	}
}

// read returns the contents of all files in a folder.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(content)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return files
}

func TestEveryProjectIsComplete(t *testing.T) {
	marks := regexp.MustCompile(`<%|%>|<no value>`)
	for _, language := range scaffold.Languages {
		for _, kind := range scaffold.Kinds {
			t.Run(language+"/"+kind, func(t *testing.T) {
				o := options(t)
				o.Language = language
				o.Kind = kind
				project, err := scaffold.Write(o)
				if err != nil {
					t.Fatal(err)
				}
				files := read(t, o.Dir)
				if len(files) != len(project.Files) {
					t.Errorf("%d files exist, %d are reported", len(files), len(project.Files))
				}
				for _, name := range []string{
					"README.md", "Makefile", "Dockerfile", "sample.yaml", "manifests/Kustomization", "manifests/controller.yaml",
					"manifests/hook.yaml", "manifests/role.yaml",
				} {
					if files[name] == "" {
						t.Errorf("there is no %s", name)
					}
				}
				for name, content := range files {
					if mark := marks.FindString(content); mark != "" && !strings.HasSuffix(name, ".ts") {
						t.Errorf("%s contains %q", name, mark)
					}
					if strings.HasSuffix(content, "\n\n") || !strings.HasSuffix(content, "\n") {
						t.Errorf("%s does not end with one line break", name)
					}
					checkYAML(t, name, content)
				}
			})
		}
	}
}

// checkYAML checks that each document of a manifest is an object with a kind.
func checkYAML(t *testing.T, name, content string) {
	t.Helper()
	if !strings.HasSuffix(name, ".yaml") && !strings.HasSuffix(name, "Kustomization") {
		return
	}
	for document := range strings.SplitSeq(content, "\n---\n") {
		var object struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(document), &object); err != nil || object.Kind == "" || object.APIVersion == "" {
			t.Errorf("%s: got %+v (%v), expected an object", name, object, err)
		}
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	o := options(t)
	mine := map[string]string{"hook.go": "mine", "notes.txt": "mine"}
	for name, content := range mine {
		err := errors.Join(os.MkdirAll(o.Dir, 0o755), os.WriteFile(filepath.Join(o.Dir, name), []byte(content), 0o644))
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := scaffold.Write(o)
	if err == nil || !strings.Contains(err.Error(), "nothing written, because 1 of the project's files exist: hook.go;") {
		t.Errorf("got the error %v", err)
	}
	if diff := cmp.Diff(mine, read(t, o.Dir)); diff != "" {
		t.Errorf("files (-before +after):\n%s", diff)
	}
}

func TestAFailureLeavesNothing(t *testing.T) {
	o := options(t)
	blocked := filepath.Join(o.Dir, "manifests")
	if err := errors.Join(os.MkdirAll(o.Dir, 0o755), os.WriteFile(blocked, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.Write(o); err == nil {
		t.Fatal("got no error, although a file is in the place of a folder")
	}
	if diff := cmp.Diff(map[string]string{"manifests": ""}, read(t, o.Dir)); diff != "" {
		t.Errorf("files (-before +after):\n%s", diff)
	}
	o.Dir = blocked
	if _, err := scaffold.Write(o); err == nil || !strings.Contains(err.Error(), "is a file") {
		t.Errorf("a file in place of the project's folder: got the error %v", err)
	}
}

func TestWrongOptionsNameTheFlag(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(o *scaffold.Options)
	}{
		{"got no NAME", func(o *scaffold.Options) { o.Name = "" }},
		{`NAME: got "Web Shop", expected a DNS label such as "web-shop": at most 63`,
			func(o *scaffold.Options) { o.Name = "Web Shop" }},
		{`NAME: got "_", expected a DNS label such as "web-shop"`, func(o *scaffold.Options) { o.Name = "_" }},
		{`NAME: got "Shop", expected a DNS label such as "shop"`, func(o *scaffold.Options) { o.Name = "Shop" }},
		{`NAME: got "../shop"`, func(o *scaffold.Options) { o.Name = "../shop" }},
		{`NAME: got "on", expected a text that YAML`, func(o *scaffold.Options) { o.Name = "on" }},
		{`--parent-kind: got "Yes", expected a text`, func(o *scaffold.Options) { o.ParentKind = "Yes" }},
		{`--lang: got "", expected go, python, typescript or webhook`, func(o *scaffold.Options) { o.Language = "" }},
		{`--kind: got "job", expected composite, decorator or map`, func(o *scaffold.Options) { o.Kind = "job" }},
		{`--group: got "example"`, func(o *scaffold.Options) { o.Group = "example" }},
		{`--group: got "apps.k8s.io", expected a group of your own`, func(o *scaffold.Options) { o.Group = "apps.k8s.io" }},
		{`--api-version: got "1"`, func(o *scaffold.Options) { o.Version = "1" }},
		{`--parent-kind: got "web shop"`, func(o *scaffold.Options) { o.ParentKind = "web shop" }},
		{`--parent-kind: got "Style", which has another meaning`, func(o *scaffold.Options) { o.Name = "style" }},
		{`--parent-kind: got "None", which has another meaning`,
			func(o *scaffold.Options) { o.Language, o.Name = "python", "none" }},
		{`--plural: got "Shops"`, func(o *scaffold.Options) { o.Plural = "Shops" }},
		{`--module: got "a b"`, func(o *scaffold.Options) { o.Module = "a b" }},
		{`--image: got "a b"`, func(o *scaffold.Options) { o.Image = "a b" }},
		{"--parent-kind, --plural: a decorator", func(o *scaffold.Options) { o.Kind, o.ParentKind = "decorator", "Shop" }},
		{`--module: got "a/b", expected it only with --lang go`,
			func(o *scaffold.Options) { o.Language, o.Module = "python", "a/b" }},
		{"--sdk: got \"testdata\", expected the folder of a checkout", func(o *scaffold.Options) { o.SDK = "testdata" }},
		{`a b", expected a path without spaces`, func(o *scaffold.Options) { o.SDK = spaced(t) }},
		{"--sdk: got no folder, and this build of hookloop (v0.1.0-3-gabc) is no release",
			func(o *scaffold.Options) { o.SDK, o.Release = "", "v0.1.0-3-gabc" }},
	} {
		t.Run(c.want, func(t *testing.T) {
			o := options(t)
			c.change(&o)
			_, err := scaffold.Write(o)
			var option *scaffold.OptionError
			if !errors.As(err, &option) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an OptionError with %q", err, c.want)
			}
			if files := read(t, o.Dir); len(files) > 0 {
				t.Errorf("files were written: %v", files)
			}
		})
	}
}

// spaced returns a checkout in a folder that make cannot name.
func spaced(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(checkout)
	link := filepath.Join(t.TempDir(), "a b")
	if err := errors.Join(err, os.Symlink(root, link)); err != nil {
		t.Fatal(err)
	}
	return link
}

func TestNamesFollowFromTheName(t *testing.T) {
	for name, want := range map[string][2]string{
		"shop": {"Shop", "shops"}, "web-shop": {"WebShop", "webshops"}, "policy": {"Policy", "policies"},
		"mailbox": {"Mailbox", "mailboxes"}, "2nd-day": {"X2ndDay", "x2nddays"},
	} {
		o := options(t)
		o.Name = name
		o.Language = "webhook"
		if _, err := scaffold.Write(o); err != nil {
			t.Fatal(err)
		}
		crd := read(t, o.Dir)["manifests/crd.yaml"]
		if !strings.Contains(crd, "kind: "+want[0]+"\n") || !strings.Contains(crd, "plural: "+want[1]+"\n") {
			t.Errorf("%s: expected the kind %s and the plural %s in:\n%s", name, want[0], want[1], crd)
		}
		if problems := validation.IsDNS1035Label(want[1]); len(problems) > 0 {
			t.Errorf("%s: %v", want[1], problems)
		}
	}
}

func TestAReleaseUsesThePublishedSDKs(t *testing.T) {
	for language, want := range map[string][2]string{
		"go":         {"go.mod", "github.com/hookloop/hookloop/sdk/go v0.3.1\n"},
		"python":     {"requirements.txt", "hookloop[crd]==0.3.1\n"},
		"typescript": {"package.json", `"@hookloop/hook": "0.3.1"`},
	} {
		o := options(t)
		o.Language = language
		o.SDK = ""
		o.Release = "v0.3.1"
		if _, err := scaffold.Write(o); err != nil {
			t.Fatal(err)
		}
		files := read(t, o.Dir)
		if !strings.Contains(files[want[0]], want[1]) {
			t.Errorf("%s: expected %q in:\n%s", want[0], want[1], files[want[0]])
		}
		for name, content := range files {
			if strings.Contains(content, "sdk/"+language) && language != "go" || strings.Contains(content, "replace") {
				t.Errorf("%s refers to a checkout:\n%s", name, content)
			}
		}
	}
}

// TestVersionsAreThoseOfTheSDK keeps the modules and tools of the templates in step with the
// repository's own.
func TestVersionsAreThoseOfTheSDK(t *testing.T) {
	o := options(t)
	if _, err := scaffold.Write(o); err != nil {
		t.Fatal(err)
	}
	files := read(t, o.Dir)
	for _, c := range []struct{ file, before, source, module string }{
		{"go.mod", "go ", "sdk/go/go.mod", "go"},
		{"go.mod", "k8s.io/api ", "sdk/go/go.mod", "k8s.io/api"},
		{"go.mod", "k8s.io/apimachinery ", "sdk/go/go.mod", "k8s.io/apimachinery"},
		{"Makefile", "sigs.k8s.io/controller-tools/cmd/controller-gen@", "tools/go.mod", "sigs.k8s.io/controller-tools"},
	} {
		source, err := os.ReadFile(filepath.Join(checkout, c.source))
		if err != nil {
			t.Fatal(err)
		}
		match := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(c.module) + ` (\S+)`).FindSubmatch(source)
		if match == nil {
			t.Fatalf("%s has no version of %s", c.source, c.module)
		}
		if want := c.before + string(match[1]) + "\n"; !strings.Contains(files[c.file], want) {
			t.Errorf("%s has no line with %q, the version of %s; it has:\n%s", c.file, want, c.source, files[c.file])
		}
	}
}

func TestFindSDK(t *testing.T) {
	root, err := filepath.Abs(checkout)
	if err != nil {
		t.Fatal(err)
	}
	if got := scaffold.FindSDK(filepath.Join(root, "cmd", "hookloop", "main.go")); got != root {
		t.Errorf("a file in the checkout: got %q, want %q", got, root)
	}
	elsewhere := filepath.Join(t.TempDir(), "hookloop")
	if err := os.WriteFile(elsewhere, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := scaffold.FindSDK(elsewhere); got != "" {
		t.Errorf("a file elsewhere: got %q, want none", got)
	}
}

// makeIn runs make in a project with a PATH of one folder, and returns its output.
func makeIn(t *testing.T, dir, path string, args ...string) (string, error) {
	t.Helper()
	program, err := exec.LookPath("make")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program, args...)
	command.Dir = dir
	command.Env = []string{"PATH=" + path}
	out, err := command.CombinedOutput()
	return string(out), err
}

// TestPipFails has a Python with a pip that cannot install anything. Another Python cannot use the
// folder that it leaves.
func TestPipFails(t *testing.T) {
	o := options(t)
	o.Language = "python"
	if _, err := scaffold.Write(o); err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(t.TempDir(), "python3")
	script := "#!/bin/sh\nfor dir; do :; done\n" + // the last argument of -m venv
		"mkdir -p $dir/bin; echo '#!/bin/sh' >$dir/bin/python; echo 'exit 1' >>$dir/bin/python; chmod +x $dir/bin/python\n"
	if err := os.WriteFile(python, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := makeIn(t, o.Dir, os.Getenv("PATH"), "test", "PYTHON="+python)
	if want := "remove .venv and set PYTHON="; err == nil || !strings.Contains(out, want) {
		t.Errorf("got %v and %s, want an error with %q", err, out, want)
	}
}

func TestAMissingProgramIsOneMessage(t *testing.T) {
	for _, c := range []struct{ language, target, want string }{
		{"go", "test", "make: go is missing: install Go"},
		{"python", "dev", "make: python3 is missing: install Python"},
		{"typescript", "test", "make: npm is missing: install Node.js"},
		{"webhook", "test", "make: python3 is missing: install Python"},
		{"webhook", "dev", "make: hookloop is missing: put it on the PATH"},
		{"webhook", "role", "make: hookloop is missing: put it on the PATH"},
		{"webhook", "image", "make: docker is missing: install it"},
		{"webhook", "deploy", "make: kubectl is missing: install it"},
	} {
		t.Run(c.language+"/"+c.target, func(t *testing.T) {
			o := options(t)
			o.Language = c.language
			if _, err := scaffold.Write(o); err != nil {
				t.Fatal(err)
			}
			out, err := makeIn(t, o.Dir, t.TempDir(), c.target)
			if lines := strings.Split(out, "\n"); err == nil || !strings.HasPrefix(lines[0], c.want) || len(lines) > 3 {
				t.Errorf("got %v and\n%s\nwant the line %q and make's own", err, out, c.want)
			}
		})
	}
}

func TestAFailureKeepsTheRole(t *testing.T) {
	o := options(t)
	if _, err := scaffold.Write(o); err != nil {
		t.Fatal(err)
	}
	before := read(t, o.Dir)["manifests/role.yaml"]
	if out, err := makeIn(t, o.Dir, os.Getenv("PATH"), "role", "HOOKLOOP=false"); err == nil {
		t.Fatalf("got no error; make printed:\n%s", out)
	}
	if diff := cmp.Diff(before, read(t, o.Dir)["manifests/role.yaml"]); diff != "" {
		t.Errorf("role.yaml (-before +after):\n%s", diff)
	}
}

// TestTheSDKOfACheckoutIsBuilt uses a checkout in which the SDK's JavaScript is not built.
func TestTheSDKOfACheckoutIsBuilt(t *testing.T) {
	o := options(t)
	o.Language, o.SDK = "typescript", filepath.Join(t.TempDir(), "checkout")
	mark := filepath.Join(o.SDK, "sdk", "go", "go.mod")
	if err := errors.Join(os.MkdirAll(filepath.Dir(mark), 0o755), os.WriteFile(mark, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.Write(o); err != nil {
		t.Fatal(err)
	}
	out, err := makeIn(t, o.Dir, os.Getenv("PATH"), "-n", "test")
	if err != nil || !strings.Contains(out, "cd "+o.SDK+"/sdk/typescript && npm ") {
		t.Errorf("got %v and\n%s\nwant the build of the SDK", err, out)
	}
}

// TestAResponseWithoutJSONIsAnError has a webhook that returns a value which JSON does not have.
func TestAResponseWithoutJSONIsAnError(t *testing.T) {
	o := options(t)
	o.Language = "webhook"
	if _, err := scaffold.Write(o); err != nil {
		t.Fatal(err)
	}
	hook := []byte("def sync(request):\n    return {\"status\": {1}}\n")
	if err := os.WriteFile(filepath.Join(o.Dir, "hook.py"), hook, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("python3", "-c", `
import http.server, threading, urllib.error, urllib.request, server
listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), server.Handler)
threading.Thread(target=listener.serve_forever, daemon=True).start()
try:
    urllib.request.urlopen(f"http://127.0.0.1:{listener.server_port}/sync", b"{}")
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
`)
	command.Dir = o.Dir
	out, err := command.CombinedOutput()
	if want := `500 {"error": "TypeError: `; err != nil || !strings.Contains(string(out), want) {
		t.Errorf("got %v and %s, want %s", err, out, want)
	}
}
