package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

const modulePath = "github.com/hookloop/hookloop"

// modules are the folders of the published Go modules, each after those that it requires.
var modules = []string{"gen", "internal/protocol", "sdk/go", "."}

// packages are the folders that are published alone, and need a license of their own.
var packages = []string{"gen", "internal/protocol", "sdk/go", "sdk/python", "sdk/typescript"}

// pathOf returns the path of the module in a folder.
func pathOf(folder string) string {
	if folder == "." {
		return modulePath
	}
	return modulePath + "/" + folder
}

// tagOf returns the tag that Go expects for a version of the module in a folder.
func (r *release) tagOf(folder string) string {
	if folder == "." {
		return r.tag()
	}
	return folder + "/" + r.tag()
}

// makeCommit clones the repository and makes the commit that the tags name. It differs from the
// source in the go.mod files: they require this version of each other, and those that are published
// have no "replace", with which "go install" refuses a module. The same source gives the same
// commit.
func (r *release) makeCommit(ctx context.Context) error {
	if err := r.cloneSource(ctx); err != nil {
		return err
	}
	license, err := os.ReadFile(filepath.Join(r.repository, "LICENSE"))
	if err != nil {
		return err
	}
	for _, folder := range packages {
		if err := writeFile(filepath.Join(r.repository, folder, "LICENSE"), license); err != nil {
			return err
		}
	}
	if err := r.requireVersion(ctx); err != nil {
		return err
	}
	var sums []string
	for _, folder := range modules {
		lines, err := r.publishModule(folder, sums)
		if err != nil {
			return fmt.Errorf("module %s: %w", pathOf(folder), err)
		}
		sums = append(sums, lines...)
	}
	return r.commitAndTag(ctx)
}

// cloneSource clones the last commit of the source, which must have no other changes.
func (r *release) cloneSource(ctx context.Context) error {
	changes, err := command(ctx, r.source, os.Environ(), "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" {
		return fmt.Errorf("got changes without a commit, expected none: a release is made of a commit\n%s", changes)
	}
	if _, err := command(ctx, r.source, os.Environ(), "git", "clone", "--quiet", "--shared", "--no-tags", ".",
		r.repository); err != nil {
		return err
	}
	seconds, err := r.git(ctx, "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return err
	}
	r.when = time.Unix(unix, 0).UTC()
	_, err = r.git(ctx, "checkout", "--quiet", "--detach")
	return err
}

func (r *release) git(ctx context.Context, args ...string) (string, error) {
	return command(ctx, r.repository, os.Environ(), "git", args...)
}

// requireVersion replaces v0.0.0 in all go.mod files, and removes the replace directives of the
// published ones.
func (r *release) requireVersion(ctx context.Context) error {
	files, err := r.git(ctx, "ls-files", "--", "go.mod", "**/go.mod")
	if err != nil {
		return err
	}
	published := map[string]bool{}
	for _, folder := range modules {
		published[folder] = true
	}
	for name := range strings.SplitSeq(files, "\n") {
		path := filepath.Join(r.repository, name)
		data, err := os.ReadFile(path) //nolint:gosec // a file of the clone
		if err != nil {
			return err
		}
		file, err := modfile.Parse(name, data, nil)
		if err != nil {
			return err
		}
		if err := r.stamp(file, published[filepath.Dir(name)]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		data, err = file.Format()
		if err != nil {
			return err
		}
		if err := writeFile(path, data); err != nil {
			return err
		}
	}
	return nil
}

// stamp sets the versions of this project's modules in a go.mod file.
func (r *release) stamp(file *modfile.File, published bool) error {
	for _, folder := range modules {
		path := pathOf(folder)
		for _, required := range file.Require {
			if required.Mod.Path != path {
				continue
			}
			if err := file.AddRequire(path, r.tag()); err != nil {
				return err
			}
		}
		if published {
			if err := file.DropReplace(path, ""); err != nil {
				return err
			}
		}
	}
	file.Cleanup()
	if published && len(file.Replace) > 0 {
		return fmt.Errorf("replaces %s, expected only modules of %s in a published module", file.Replace[0].Old.Path,
			modulePath)
	}
	return nil
}

// publishModule writes the checksums of the required modules into a module's go.sum, and the module
// into the folder proxy. It returns the module's own checksums, as lines of a go.sum.
func (r *release) publishModule(folder string, required []string) ([]string, error) {
	dir := filepath.Join(r.repository, folder)
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod")) //nolint:gosec // a file of the clone
	if err != nil {
		return nil, err
	}
	if err := addSums(filepath.Join(dir, "go.sum"), string(mod), required); err != nil {
		return nil, err
	}
	at := module.Version{Path: pathOf(folder), Version: r.tag()}
	base := filepath.Join(r.proxy, filepath.FromSlash(at.Path), "@v")
	if err := os.MkdirAll(base, 0o755); err != nil { //nolint:gosec // everyone may read it
		return nil, err
	}
	archive, err := os.Create(filepath.Join(base, r.tag()+".zip")) //nolint:gosec // of the release
	if err != nil {
		return nil, err
	}
	if err := errors.Join(zip.CreateFromDir(archive, at, dir), archive.Close()); err != nil {
		return nil, err
	}
	info := fmt.Sprintf("{\"Version\":%q,\"Time\":%q}\n", r.tag(), r.when.Format(time.RFC3339))
	files := map[string]string{"list": r.tag() + "\n", r.tag() + ".info": info, r.tag() + ".mod": string(mod)}
	for name, data := range files {
		if err := writeFile(filepath.Join(base, name), []byte(data)); err != nil {
			return nil, err
		}
	}
	return sumsOf(at, archive.Name(), filepath.Join(dir, "go.mod"))
}

// sumsOf returns the lines of go.sum for a module.
func sumsOf(at module.Version, archive, mod string) ([]string, error) {
	content, err := dirhash.HashZip(archive, dirhash.Hash1)
	if err != nil {
		return nil, err
	}
	file, err := dirhash.Hash1([]string{"go.mod"}, openFile(mod))
	if err != nil {
		return nil, err
	}
	return []string{
		fmt.Sprintf("%s %s %s\n", at.Path, at.Version, content),
		fmt.Sprintf("%s %s/go.mod %s\n", at.Path, at.Version, file),
	}, nil
}

// addSums adds lines to a go.sum: those of modules that the go.mod requires. The order is that of
// "go mod tidy".
func addSums(path, mod string, sums []string) error {
	data, err := os.ReadFile(path) //nolint:gosec // a file of the clone
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(data), "\n")+"\n", "\n")
	lines = lines[:len(lines)-1]
	for _, line := range sums {
		if strings.Contains(mod, strings.Fields(line)[0]+" ") {
			lines = append(lines, line)
		}
	}
	sortSums(lines)
	return writeFile(path, []byte(strings.Join(lines, "")))
}

// commitAndTag commits with the author and the time of the source's commit.
func (r *release) commitAndTag(ctx context.Context) error {
	who, err := r.git(ctx, "log", "-1", "--format=%an%n%ae")
	if err != nil {
		return err
	}
	name, mail, _ := strings.Cut(who, "\n")
	date := strconv.FormatInt(r.when.Unix(), 10) + " +0000"
	env := append(os.Environ(), "GIT_AUTHOR_NAME="+name, "GIT_AUTHOR_EMAIL="+mail, "GIT_AUTHOR_DATE="+date,
		"GIT_COMMITTER_NAME="+name, "GIT_COMMITTER_EMAIL="+mail, "GIT_COMMITTER_DATE="+date)
	steps := [][]string{
		{"add", "--all", "--force"},
		{"-c", "commit.gpgsign=false", "commit", "--quiet", "--no-verify", "--message", "release: " + r.tag()},
	}
	for _, folder := range modules {
		steps = append(steps, []string{"tag", r.tagOf(folder)})
	}
	for _, args := range steps {
		if _, err := command(ctx, r.repository, env, "git", args...); err != nil {
			return err
		}
	}
	r.commit, err = r.git(ctx, "rev-parse", "HEAD")
	return err
}
