package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A release is built from one commit.
type release struct {
	version
	targets []target
	// source is the repository. repository is the clone with the commit of the tags, proxy a folder in
	// the layout of a Go module proxy, dist the folder of the files to upload, and work the folder of
	// everything else.
	source, repository, proxy, dist, work string
	out                                   io.Writer
	// when is the time of the source's commit, and commit that of the tags.
	when   time.Time
	commit string
}

func newRelease(source, target string, v version, targets []target, out io.Writer) *release {
	return &release{
		version: v, targets: targets, source: source, out: out,
		repository: filepath.Join(target, "repository"), proxy: filepath.Join(target, "proxy"),
		dist: filepath.Join(target, "dist"), work: filepath.Join(target, "work"),
	}
}

// build makes all packages.
func (r *release) build(ctx context.Context) error {
	for _, dir := range []string{r.repository, r.proxy, r.dist, r.work} {
		if err := removeAll(dir); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // everyone may read it
			return err
		}
	}
	steps := []struct {
		name string
		run  func(context.Context) error
	}{
		{"the commit of the tags", r.makeCommit},
		{"programs", r.buildPrograms},
		{"SBOM", r.writeSBOM},
		{"manifests", r.writeManifests},
		{"Helm chart", r.packChart},
		{"Python wheel", r.buildWheel},
		{"npm package", r.packNPM},
		{"checksums", r.writeSums},
	}
	for _, step := range steps {
		began := time.Now()
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if _, err := fmt.Fprintf(r.out, "%-24s %4.0f s\n", step.name, time.Since(began).Seconds()); err != nil {
			return err
		}
	}
	if err := removeAll(r.work); err != nil {
		return err
	}
	_, err := fmt.Fprintf(r.out, "\nrelease %s of commit %s is in %s\n", r.tag(), r.commit, r.dist)
	return err
}

// name returns the path of a file to upload.
func (r *release) file(suffix string) string {
	return filepath.Join(r.dist, "hookloop_"+r.plain()+"_"+suffix)
}

// env returns the environment of the commands: the time of the commit, and the Go modules of this
// release from the folder proxy. They have a module cache of their own, because the user's must not
// get a version that is not published.
func (r *release) env(ctx context.Context) ([]string, error) {
	settings, err := goSettings(ctx, r.source)
	if err != nil {
		return nil, err
	}
	return append(os.Environ(),
		"SOURCE_DATE_EPOCH="+strconv.FormatInt(r.when.Unix(), 10),
		"GOWORK=off", "GOFLAGS=-modcacherw", "GOTOOLCHAIN=local",
		"GOMODCACHE="+filepath.Join(r.work, "modules"),
		"GOPROXY=file://"+r.proxy+",file://"+settings.cache+"/cache/download,"+settings.proxy,
		"GONOSUMDB="+modulePath+","+settings.noSumDB,
	), nil
}

// goEnvironment has variables of "go env".
type goEnvironment struct{ cache, proxy, noSumDB string }

func goSettings(ctx context.Context, dir string) (goEnvironment, error) {
	out, err := command(ctx, dir, os.Environ(), "go", "env", "GOMODCACHE", "GOPROXY", "GONOSUMDB")
	if err != nil {
		return goEnvironment{}, err
	}
	lines := strings.Split(out+"\n\n\n", "\n")
	return goEnvironment{lines[0], lines[1], lines[2]}, nil
}

// run runs a command in the environment of the release, with more variables.
func (r *release) run(ctx context.Context, dir string, more []string, name string, args ...string) (string, error) {
	env, err := r.env(ctx)
	if err != nil {
		return "", err
	}
	return command(ctx, dir, append(env, more...), name, args...)
}

// command runs a command and returns its standard output without the last newline. The error has
// what it printed.
func command(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // the commands of this program
	cmd.Dir = dir
	cmd.Env = env
	var out, faults bytes.Buffer // two, because each is written by a goroutine of its own
	cmd.Stdout = &out
	cmd.Stderr = &faults
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out.String()+faults.String())
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// removeAll removes a folder. It makes folders writable before: those of npm and Go may not be.
func removeAll(dir string) error {
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(path, 0o755) //nolint:gosec // to remove it
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.RemoveAll(dir)
}
