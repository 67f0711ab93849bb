package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// versionFile has the version of all packages, without a "v".
const versionFile = "VERSION"

var versionPattern = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-(alpha|beta|rc)\.[0-9]+)?$`)

// version is a semantic version without a "v".
type version string

func (v version) plain() string { return string(v) }

// tag returns the version of Go modules and images.
func (v version) tag() string { return "v" + string(v) }

// python returns the version by the rules of Python: 0.2.0rc1 for 0.2.0-rc.1.
func (v version) python() string {
	return strings.NewReplacer("-alpha.", "a", "-beta.", "b", "-rc.", "rc").Replace(string(v))
}

// A place is a file with the version. The first group of the pattern is the version.
type place struct {
	path    string
	pattern *regexp.Regexp
	form    func(version) string
}

var places = []place{
	{"sdk/python/pyproject.toml", regexp.MustCompile(`(?m)^version = "([^"]*)"$`), version.python},
	{"sdk/typescript/package.json", regexp.MustCompile(`(?m)^  "version": "([^"]*)",$`), version.plain},
	{
		"sdk/typescript/package-lock.json",
		regexp.MustCompile(`"name": "@hookloop/hook",\s+"version": "([^"]*)"`), version.plain,
	},
	{
		"examples/website/typescript/package-lock.json",
		regexp.MustCompile(`"name": "@hookloop/hook",\s+"version": "([^"]*)"`), version.plain,
	},
	{"manifests/helm/hookloop/Chart.yaml", regexp.MustCompile(`(?m)^version: (.*)$`), version.plain},
	{"manifests/helm/hookloop/Chart.yaml", regexp.MustCompile(`(?m)^appVersion: (.*)$`), version.tag},
	{"manifests/production/kustomization.yaml", regexp.MustCompile(`(?m)^  newTag: (.*)$`), version.tag},
	{"docs/guides/install.md", regexp.MustCompile(`hookloop/hookloop:(v[0-9][^\s]*)`), version.tag},
}

// readVersion returns the version of the file VERSION.
func readVersion(root string) (version, error) {
	data, err := os.ReadFile(filepath.Join(root, versionFile)) //nolint:gosec // a file of the repository
	if err != nil {
		return "", err
	}
	v := strings.TrimSuffix(string(data), "\n")
	if !versionPattern.MatchString(v) {
		return "", fmt.Errorf("%s: got %q, expected a version such as 0.2.0 or 0.2.0-rc.1", versionFile, v)
	}
	return version(v), nil
}

// checkVersion returns an error that names all places with another version.
func checkVersion(root string, v version) error {
	var problems []string
	for _, p := range places {
		data, err := os.ReadFile(filepath.Join(root, p.path)) //nolint:gosec // a file of the repository
		if err != nil {
			return err
		}
		found := p.pattern.FindAllSubmatchIndex(data, -1)
		if len(found) == 0 {
			problems = append(problems, fmt.Sprintf("%s: found no version, expected %s", p.path, p.form(v)))
		}
		for _, at := range found {
			if got, want := string(data[at[2]:at[3]]), p.form(v); got != want {
				line := 1 + strings.Count(string(data[:at[2]]), "\n")
				problems = append(problems, fmt.Sprintf("%s:%d: got version %s, expected %s as in the file %s",
					p.path, line, got, want, versionFile))
			}
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("%s", strings.Join(problems, "\n"))
	}
	return nil
}

// setVersion writes a version into the file VERSION and into all places.
func setVersion(root, text string) error {
	if !versionPattern.MatchString(text) {
		return fmt.Errorf("-set: got %q, expected a version such as 0.2.0 or 0.2.0-rc.1", text)
	}
	v := version(text)
	for _, p := range places {
		path := filepath.Join(root, p.path)
		data, err := os.ReadFile(path) //nolint:gosec // a file of the repository
		if err != nil {
			return err
		}
		var out []byte
		end := 0
		for _, at := range p.pattern.FindAllSubmatchIndex(data, -1) {
			out = append(append(out, data[end:at[2]]...), p.form(v)...)
			end = at[3]
		}
		if err := writeFile(path, append(out, data[end:]...)); err != nil {
			return err
		}
	}
	if err := writeFile(filepath.Join(root, versionFile), []byte(text+"\n")); err != nil {
		return err
	}
	return checkVersion(root, v)
}

// writeFile writes a file that everyone may read.
func writeFile(path string, data []byte) error {
	return os.WriteFile(path, data, 0o644) //nolint:gosec // files of a repository and of packages
}
