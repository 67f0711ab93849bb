package scaffold

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"text/template"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/rbac"
)

//go:embed all:templates
var templates embed.FS

// These files hold the controller, and the role that is computed from it.
const (
	controllerFile = "manifests/controller.yaml"
	roleFile       = "manifests/role.yaml"
)

// hookFile returns the name of the file that holds the hook.
func hookFile(language string) string {
	switch language {
	case "go":
		return "hook.go"
	case "typescript":
		return "src/hook.ts"
	default:
		return "hook.py"
	}
}

// suffix ends the name of each template.
const suffix = ".tmpl"

// project holds what the templates can use.
type project struct {
	Options
	// APIVersion is the parent's API version, such as "example.com/v1".
	APIVersion string
	// Singular is the parent's kind in lower case.
	Singular string
	// Composite, Decorator and Map say which kind of controller this is: one of them is true.
	Composite, Decorator, Map bool
	// Hook is the name of the file that holds the hook.
	Hook string
	// Webhook says that the hook uses no SDK. Port is where it listens in its Pod.
	Webhook bool
	Port    int
	// PackageVersion is the version of the published SDKs, without a "v".
	PackageVersion string
}

func newProject(o Options) project {
	p := project{
		Options: o, APIVersion: o.Group + "/" + o.Version, Singular: strings.ToLower(o.ParentKind),
		Composite: o.Kind == kindComposite, Decorator: o.Kind == kindDecorator, Map: o.Kind == kindMap,
		Hook:    hookFile(o.Language),
		Webhook: o.Language == "webhook", Port: 9443, PackageVersion: strings.TrimPrefix(o.Release, "v"),
	}
	if p.Webhook {
		p.Port = 8080
	}
	return p
}

// render returns the project's files by path. If two folders have a file with the same name, the
// more specific folder wins.
func render(p project) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, folder := range []string{"all", p.Kind, path.Join(p.Language, "all"), path.Join(p.Language, p.Kind)} {
		root := path.Join("templates", folder)
		err := fs.WalkDir(templates, root, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := renderFile(name, p)
			if err != nil {
				return err
			}
			target := strings.TrimPrefix(strings.TrimSuffix(name, suffix), root+"/")
			files[strings.ReplaceAll(target, "VERSION", p.Version)] = content
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	role, err := roleFor(files[controllerFile], "hookloop-"+p.Name)
	if err != nil {
		return nil, err
	}
	files[roleFile] = role
	return files, nil
}

// roleFor computes the role of a controller, as "hookloop rbac" prints it.
func roleFor(controller []byte, name string) ([]byte, error) {
	set, err := manifest.Read(bytes.NewReader(controller), "-")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", controllerFile, err)
	}
	rights, err := rbac.New(context.Background(), set, rbac.Options{Name: name})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", controllerFile, err)
	}
	var role bytes.Buffer
	if err := rights.WriteYAML(&role); err != nil {
		return nil, err
	}
	return role.Bytes(), nil
}

// renderFile renders one template. Actions stand between <% and %>, because Go, Make and TypeScript
// use braces.
func renderFile(name string, p project) ([]byte, error) {
	text, err := templates.ReadFile(name)
	if err != nil {
		return nil, err
	}
	parsed, err := template.New(name).Delims("<%", "%>").Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", name, err)
	}
	var content bytes.Buffer
	if err := parsed.Execute(&content, p); err != nil {
		return nil, fmt.Errorf("template %s: %w", name, err)
	}
	return content.Bytes(), nil
}
