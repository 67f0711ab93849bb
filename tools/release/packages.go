package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A target is a platform that programs are built for.
type target struct{ system, machine string }

// platforms are those of a complete release.
const platforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64"

// parseTargets reads a list such as "linux/amd64,darwin/arm64".
func parseTargets(list string) ([]target, error) {
	var targets []target
	for platform := range strings.SplitSeq(list, ",") {
		if !slices.Contains(strings.Split(platforms, ","), platform) {
			return nil, fmt.Errorf("-platforms: got %q, expected some of %s", platform, platforms)
		}
		system, machine, _ := strings.Cut(platform, "/")
		targets = append(targets, target{system, machine})
	}
	return targets, nil
}

// kustomizations are the folders of manifests/ that are published, each as one file.
var kustomizations = map[string]string{
	"production": "install.yaml",
	"wildcard":   "install-wildcard.yaml",
	"gateway":    "install-gateway.yaml",
	"crds":       "crds.yaml",
}

// program returns the path of the program for a platform.
func (r *release) program(t target) string {
	return filepath.Join(r.work, t.system+"_"+t.machine, "hookloop")
}

// buildPrograms builds the static program for each platform, and packs it with the license.
func (r *release) buildPrograms(ctx context.Context) error {
	license, err := os.ReadFile(filepath.Join(r.repository, "LICENSE"))
	if err != nil {
		return err
	}
	for _, t := range r.targets {
		env := []string{"CGO_ENABLED=0", "GOOS=" + t.system, "GOARCH=" + t.machine}
		flags := "-s -w -X main.version=" + r.tag() + " -X main.commit=" + r.commit
		if _, err := r.run(ctx, r.repository, env, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags", flags,
			"-o", r.program(t), "./cmd/hookloop"); err != nil {
			return err
		}
		data, err := os.ReadFile(r.program(t))
		if err != nil {
			return err
		}
		entries := []entry{{"LICENSE", 0o644, license}, {"hookloop", 0o755, data}}
		if err := writeArchive(r.file(t.system+"_"+t.machine+".tar.gz"), r.when, entries); err != nil {
			return err
		}
	}
	return nil
}

// writeManifests renders each kustomization into one file.
func (r *release) writeManifests(ctx context.Context) error {
	kubectl := []string{filepath.Join(r.source, ".cache", "bin", "controlplane"), "kubectl"}
	if program := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"); filepath.IsAbs(program) {
		kubectl = []string{program}
	}
	for folder, name := range kustomizations {
		args := append(slices.Clone(kubectl[1:]), "kustomize", filepath.Join("manifests", folder))
		text, err := r.run(ctx, r.repository, nil, kubectl[0], args...)
		if err != nil {
			return err
		}
		if err := writeFile(r.file(name), []byte(text+"\n")); err != nil {
			return err
		}
	}
	return nil
}

// packChart packs the chart. Helm takes the times of files, which are replaced.
func (r *release) packChart(ctx context.Context) error {
	helm := filepath.Join(r.source, ".cache", "bin", "helm")
	if _, err := r.run(ctx, r.repository, nil, helm, "package", "manifests/helm/hookloop", "--destination",
		r.work); err != nil {
		return err
	}
	name := "hookloop-" + r.plain() + ".tgz"
	entries, err := readArchive(filepath.Join(r.work, name))
	if err != nil {
		return err
	}
	return writeArchive(filepath.Join(r.dist, name), r.when, entries)
}

// buildWheel builds the wheel of the Python SDK with the system's setuptools.
func (r *release) buildWheel(ctx context.Context) error {
	_, err := r.run(ctx, r.repository, nil, "/usr/bin/python3", "-m", "pip", "--disable-pip-version-check",
		"wheel", "--quiet", "--no-cache-dir", "--no-index", "--no-build-isolation", "--no-deps", "--wheel-dir", r.dist,
		"./sdk/python")
	return err
}

// packNPM packs the TypeScript SDK with the compiler that its package-lock.json pins.
func (r *release) packNPM(ctx context.Context) error {
	dir := filepath.Join(r.repository, "sdk", "typescript")
	if _, err := r.run(ctx, dir, nil, "npm", "ci", "--silent", "--no-audit", "--no-fund", "--prefer-offline"); err != nil {
		return err
	}
	_, err := r.run(ctx, dir, nil, "npm", "pack", "--silent", "--pack-destination", r.dist)
	return err
}

// writeSums writes SHA256SUMS, for "sha256sum --check".
func (r *release) writeSums(context.Context) error {
	files, err := os.ReadDir(r.dist)
	if err != nil {
		return err
	}
	var lines []string
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(r.dist, file.Name()))
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(data), file.Name()))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	return writeFile(filepath.Join(r.dist, "SHA256SUMS"), []byte(strings.Join(lines, "")))
}
