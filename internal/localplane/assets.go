package localplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Program names one program of a control plane: a file, and the arguments that come before its own.
type Program struct {
	Path string
	Args []string
}

// IsZero returns true if there is no such program.
func (p Program) IsZero() bool { return p.Path == "" }

// String returns the command line.
func (p Program) String() string { return strings.Join(append([]string{p.Path}, p.Args...), " ") }

// Assets holds the programs of a control plane. Use [Find] to get them.
type Assets struct {
	Etcd, APIServer Program
	// ControllerManager may be zero. Then nobody collects garbage, deletes namespaces or runs
	// Deployments.
	ControllerManager Program
	// Kubectl may be zero.
	Kubectl Program
	// Source says where the programs come from, for people.
	Source string

	// embedded is true for the etcd of test/controlplane, which has flags of its own.
	embedded bool
}

// Complete returns true if all four programs are there.
func (a Assets) Complete() bool { return !a.ControllerManager.IsZero() && !a.Kubectl.IsZero() }

// Search says which programs [Find] may use.
type Search struct {
	// Built is the program of test/controlplane if the caller has built it. The file need not exist.
	Built string
	// Complete makes Find skip a source without kube-controller-manager or kubectl.
	Complete bool
	// Fetch lets Find download the programs with setup-envtest, if that takes only a few seconds.
	Fetch bool
}

// Beside returns where the control plane program is if it is in the same folder as this program,
// for Search.Built. In a clone of Hookloop both are in .cache/bin.
func Beside() string {
	self, err := os.Executable()
	if err != nil { // then nothing is beside it
		return ""
	}
	return filepath.Join(filepath.Dir(self), "controlplane")
}

// These environment variables name programs.
const (
	envProgram = "HOOKLOOP_CONTROLPLANE"
	envAssets  = "KUBEBUILDER_ASSETS"
)

// errSkip says that this machine does not have a source, so that Find tries the next one.
var errSkip = errors.New("skip")

// Find returns the programs of the first of these sources that has them:
//
// 1. HOOKLOOP_CONTROLPLANE, a program of test/controlplane 2. KUBEBUILDER_ASSETS, a folder with
// kube-apiserver and etcd 3. Search.Built 4. the folder of setup-envtest, then its download
//
// If the user names a source that cannot be used, Find returns an error. If no source has the
// programs, the error is a *[MissingError].
func Find(ctx context.Context, s Search) (Assets, error) {
	sources := []func(context.Context, Search) (Assets, error){named, assetsFolder, built, installed, fetched}
	var tried []string
	for _, source := range sources {
		assets, err := source(ctx, s)
		switch {
		case err == nil && s.Complete && !assets.Complete():
			tried = append(tried, assets.Source+" has no "+strings.Join(assets.missing(), " and no "))
		case err == nil:
			return assets, nil
		case errors.Is(err, errSkip):
			tried = append(tried, strings.TrimSuffix(err.Error(), ": "+errSkip.Error()))
		default:
			return Assets{}, err
		}
	}
	return Assets{}, &MissingError{Tried: tried}
}

// MissingError says that no source has the programs, and which were tried.
type MissingError struct {
	// Tried has a line for each source.
	Tried []string
}

// Error implements error.
func (e *MissingError) Error() string {
	return "no control plane found: " + strings.Join(e.Tried, "; ") + ". Set " + envAssets +
		" to a folder with kube-apiserver and etcd (setup-envtest use -p path), " +
		"or build one in a clone of Hookloop (make controlplane), and set " + envProgram + " to its .cache/bin/controlplane"
}

func (a Assets) missing() []string {
	var out []string
	if a.ControllerManager.IsZero() {
		out = append(out, "kube-controller-manager")
	}
	if a.Kubectl.IsZero() {
		out = append(out, "kubectl")
	}
	return out
}

// named returns the program of HOOKLOOP_CONTROLPLANE.
func named(context.Context, Search) (Assets, error) {
	program := os.Getenv(envProgram)
	if program == "" {
		return Assets{}, skip(envProgram + " is not set")
	}
	if _, err := os.Stat(program); err != nil {
		return Assets{}, fmt.Errorf("%s: the program is missing (%w); build one with: make controlplane", envProgram, err)
	}
	return One(program), nil
}

// assetsFolder returns the programs of KUBEBUILDER_ASSETS.
func assetsFolder(context.Context, Search) (Assets, error) {
	dir := os.Getenv(envAssets)
	if dir == "" {
		return Assets{}, skip(envAssets + " is not set")
	}
	assets, err := Folder(dir)
	if err != nil {
		return Assets{}, fmt.Errorf("%s: %w; install them with: setup-envtest use -p path", envAssets, err)
	}
	assets.Source = envAssets + "=" + dir
	return assets, nil
}

func built(_ context.Context, s Search) (Assets, error) {
	if s.Built == "" {
		return Assets{}, skip("no control plane was built")
	}
	if _, err := os.Stat(s.Built); err != nil {
		return Assets{}, skip(s.Built + " is not built")
	}
	return One(s.Built), nil
}

// One returns the assets of a program of test/controlplane, which contains all servers. If there is
// a file etcd beside it, that is used instead of its own.
func One(program string) Assets {
	one := func(name string) Program { return Program{Path: program, Args: []string{name}} }
	assets := Assets{
		Etcd: one("etcd"), APIServer: one("kube-apiserver"), ControllerManager: one("kube-controller-manager"),
		Kubectl: one("kubectl"), Source: program, embedded: true,
	}
	if etcd := filepath.Join(filepath.Dir(program), "etcd"); executable(etcd) {
		assets.Etcd = Program{Path: etcd}
	}
	return assets
}

// Folder returns the programs of a folder such as KUBEBUILDER_ASSETS. It looks for kubectl on the
// PATH if the folder has none. It returns an error if kube-apiserver or etcd is missing.
func Folder(dir string) (Assets, error) {
	in := func(name string) Program {
		if path := filepath.Join(dir, name); executable(path) {
			return Program{Path: path}
		}
		return Program{}
	}
	assets := Assets{
		Etcd: in("etcd"), APIServer: in("kube-apiserver"), ControllerManager: in("kube-controller-manager"),
		Kubectl: in("kubectl"), Source: dir,
	}
	for name, program := range map[string]Program{"etcd": assets.Etcd, "kube-apiserver": assets.APIServer} {
		if program.IsZero() {
			return Assets{}, fmt.Errorf("the folder %s has no program %s, expected kube-apiserver and etcd", dir, name)
		}
	}
	if assets.Kubectl.IsZero() {
		if path, err := exec.LookPath("kubectl"); err == nil {
			assets.Kubectl = Program{Path: path}
		}
	}
	return assets, nil
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func skip(reason string) error { return fmt.Errorf("%s: %w", reason, errSkip) }
