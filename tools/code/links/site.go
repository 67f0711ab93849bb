package main

import (
	"fmt"
	"html"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	reference = regexp.MustCompile(`\s(?:href|src)="([^"]*)"`)
	identity  = regexp.MustCompile(`\sid="([^"]*)"`)
)

// site is a built site: its files, and the identities of elements in its pages.
type site struct {
	root  fs.FS
	pages map[string]string          // the HTML by path
	ids   map[string]map[string]bool // by path
}

// readSite reads the pages of a built site.
func readSite(root fs.FS) (site, error) {
	s := site{root: root, pages: map[string]string{}, ids: map[string]map[string]bool{}}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".html" {
			return err
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		s.pages[name] = string(data)
		s.ids[name] = map[string]bool{}
		for _, match := range identity.FindAllStringSubmatch(string(data), -1) {
			s.ids[name][html.UnescapeString(match[1])] = true
		}
		return nil
	})
	if err == nil && len(s.pages) == 0 {
		err = fmt.Errorf("the site has no pages; expected *.html, which \"make docs\" writes")
	}
	return s, err
}

// check returns the references that lead nowhere.
func (s site) check() []finding {
	var found []finding
	for _, name := range slices.Sorted(maps.Keys(s.pages)) {
		for _, match := range reference.FindAllStringSubmatch(s.pages[name], -1) {
			if message := s.checkReference(name, html.UnescapeString(match[1])); message != "" {
				found = append(found, finding{name, 0, message})
			}
		}
	}
	return found
}

// checkReference returns the fault of a reference in the page from, or nothing.
func (s site) checkReference(from, target string) string {
	if scheme.MatchString(target) {
		return ""
	}
	if strings.HasPrefix(target, "/") {
		return fmt.Sprintf("link to %s: expected a relative link, so that the site works in any folder", target)
	}
	name, fragment, _ := strings.Cut(target, "#")
	to := from
	if name != "" {
		clean, err := url.PathUnescape(name)
		if err != nil {
			return fmt.Sprintf("link to %s: %v", target, err)
		}
		to = path.Join(path.Dir(from), clean)
	}
	if info, err := fs.Stat(s.root, to); err == nil && info.IsDir() {
		return fmt.Sprintf("link to %s: a folder; expected its index.html, so that the site works from files", target)
	} else if err != nil {
		return fmt.Sprintf("link to %s: no such file", target)
	}
	anchor, err := url.PathUnescape(fragment)
	if known, isPage := s.ids[to]; err != nil || anchor != "" && isPage && !known[anchor] {
		return fmt.Sprintf("link to %s: the page has no element with that id", target)
	}
	return ""
}
