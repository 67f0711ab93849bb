package localplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

const (
	// envtestIndex is the list that setup-envtest reads before a download.
	envtestIndex = "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml"
	// reachTimeout limits the request that checks whether the list can be reached.
	reachTimeout = 3 * time.Second
	// fetchTimeout limits the download of about 60 MB. Building takes minutes.
	fetchTimeout = 30 * time.Second
)

// installed returns the newest programs that setup-envtest has downloaded. The tool itself is not
// needed.
func installed(context.Context, Search) (Assets, error) {
	dirs, _ := filepath.Glob(filepath.Join(envtestStore(), "k8s", "*-"+runtime.GOOS+"-"+runtime.GOARCH)) // a fixed pattern
	var newest *version.Version
	var found Assets
	for _, dir := range dirs {
		number, _, _ := strings.Cut(filepath.Base(dir), "-")
		v, err := version.ParseGeneric(number)
		if err != nil || newest != nil && !newest.LessThan(v) {
			continue
		}
		if assets, err := Folder(dir); err == nil { // an interrupted download has no programs
			newest = v
			found = assets
		}
	}
	if newest == nil {
		return Assets{}, skip("setup-envtest has installed nothing")
	}
	found.Source = "setup-envtest, " + found.Source
	return found, nil
}

// envtestStore returns the folder in which setup-envtest keeps its downloads.
func envtestStore() string {
	home, _ := os.UserHomeDir() // without one, the folder does not exist
	switch data := os.Getenv("XDG_DATA_HOME"); {
	case runtime.GOOS == "darwin":
		return filepath.Join(home, "Library", "Application Support", "io.kubebuilder.envtest")
	case data != "":
		return filepath.Join(data, "kubebuilder-envtest")
	default:
		return filepath.Join(home, ".local", "share", "kubebuilder-envtest")
	}
}

// fetched downloads the programs with setup-envtest. It gives up after a few seconds if the host
// cannot be reached.
func fetched(ctx context.Context, s Search) (Assets, error) {
	if !s.Fetch {
		return Assets{}, skip("a download was not asked for")
	}
	tool, err := exec.LookPath("setup-envtest")
	if err != nil {
		return Assets{}, skip("setup-envtest is not on the PATH")
	}
	if err := reach(ctx, envtestIndex); err != nil {
		return Assets{}, skip(fmt.Sprintf("setup-envtest cannot download (%v)", err))
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, tool, "use", "-p", "path").Output() //nolint:gosec // the user's own tool
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return Assets{}, skip(fmt.Sprintf("setup-envtest use: %v", err))
	}
	assets, err := Folder(strings.TrimSpace(string(out)))
	if err != nil {
		return Assets{}, skip("setup-envtest use: " + err.Error())
	}
	assets.Source = "setup-envtest, " + assets.Source
	return assets, nil
}

// reach returns an error if the server of url does not answer.
func reach(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close() // a response to HEAD has no body
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}
