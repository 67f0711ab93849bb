package dev

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/engine/hook"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// declared holds what the files declare.
type declared struct {
	controllers []*unstructured.Unstructured
	crds        []*unstructured.Unstructured
	// controllerFiles and crdFiles are the same objects with their positions in the files.
	controllerFiles []*manifest.Controller
	crdFiles        []*manifest.CRD
}

// readStdin reads the file "-", if it is named. We keep the content, because every change of a file
// reads all files.
func (o *Options) readStdin() ([]byte, error) {
	if !slices.Contains(o.Files, "-") {
		return nil, nil
	}
	data, err := io.ReadAll(io.LimitReader(os.Stdin, manifest.MaxBytes+1)) // Read refuses a longer text
	if err != nil {
		return nil, fmt.Errorf("-f -: %w", err)
	}
	return data, nil
}

// read reads the files, and selects the controllers.
func (s *session) read() (*declared, error) {
	o := s.Options
	set, err := manifest.Read(bytes.NewReader(s.stdin), o.Files...)
	if err != nil {
		return nil, err
	}
	all, err := set.Controllers()
	if err != nil {
		return nil, err
	}
	chosen, err := o.choose(set, all)
	if err != nil {
		return nil, err
	}
	d := &declared{controllerFiles: chosen}
	for _, c := range chosen {
		if err := add(&d.controllers, c.Object); err != nil {
			return nil, err
		}
	}
	crds, err := set.CRDs()
	if err != nil {
		return nil, err
	}
	for _, c := range crds {
		if c.Definition.Spec.Group == manifestGroup { // its controllers are in memory
			continue
		}
		if err := add(&d.crds, c.Object); err != nil {
			return nil, err
		}
		d.crdFiles = append(d.crdFiles, c)
	}
	return d, nil
}

func add(to *[]*unstructured.Unstructured, o *manifest.Object) error {
	body, err := o.Map()
	if err != nil {
		return err
	}
	*to = append(*to, &unstructured.Unstructured{Object: body})
	return nil
}

// choose picks the controllers that the options name.
func (o *Options) choose(set *manifest.Set, all []*manifest.Controller) ([]*manifest.Controller, error) {
	if len(o.Controllers) == 0 && len(all) > 1 && len(o.Command) > 0 {
		var places []string
		for _, c := range all {
			places = append(places, fmt.Sprintf("%s (%s)", nameOf(c), c.At("")))
		}
		return nil, fmt.Errorf("%s: got %d controllers and one command: %s; choose with --controller %s, "+
			"and repeat the flag if the command serves several", set, len(all), strings.Join(places, ", "), nameOf(all[0]))
	}
	if len(o.Controllers) == 0 {
		return all, nil
	}
	var chosen []*manifest.Controller
	for _, name := range o.Controllers {
		i := slices.IndexFunc(all, func(c *manifest.Controller) bool { return nameOf(c) == name })
		if i < 0 {
			var names []string
			for _, c := range all {
				names = append(names, nameOf(c))
			}
			return nil, usagef("--controller: got %q, expected one of %s", name, strings.Join(names, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// nameOf returns how lines call a controller: composite/web.
func nameOf(c *manifest.Controller) string { return displayName(c.GVK().Kind, c.Name()) }

func displayName(kind, name string) string {
	descriptor, _ := hook.DescriptorOf(kind)
	return string(descriptor.ControllerKind) + "/" + name
}

// ignoredNames lists folders without source code: dependencies and build output. Hidden folders are
// ignored, too.
var ignoredNames = []string{"node_modules", "__pycache__", "venv", "target", "build", "dist", "out", "vendor"}

// ignoredEndings lists endings of files that editors and interpreters write.
var ignoredEndings = []string{"~", ".pyc", ".swp", ".swx", ".tmp", ".log", ".test"}

// ignored returns true if a change of the path should not restart the hook. A folder that is named
// in the command is never ignored.
func (o *Options) ignored(path string) bool {
	base := filepath.Base(path)
	for _, arg := range o.Command {
		if strings.Contains(filepath.ToSlash(filepath.Clean(arg))+"/", base+"/") {
			return false
		}
	}
	return base != "." && strings.HasPrefix(base, ".") || slices.Contains(ignoredNames, base) || base == "4913" ||
		slices.ContainsFunc(ignoredEndings, func(end string) bool { return strings.HasSuffix(base, end) })
}

// isManifest returns true for the files with controllers and CRDs.
func (o *Options) isManifest(path string) bool {
	extension := filepath.Ext(path)
	return slices.ContainsFunc(o.Files, func(file string) bool {
		file = absolute(file)
		path := absolute(path)
		return file == path ||
			file == filepath.Dir(path) && slices.Contains([]string{".yaml", ".yml", ".json"}, extension)
	})
}

func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return filepath.Clean(path)
}
