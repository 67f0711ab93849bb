package render

import (
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"k8s.io/client-go/rest"
)

// Options configures [Render].
type Options struct {
	// Version is the program's version.
	Version string
	// Files lists files and folders with controllers, CRDs, parents and observed objects; "-" reads
	// Stdin.
	Files []string
	Stdin io.Reader
	// Hook is the hook's address, host:port or http://host:port. If it is empty, the controllers' own
	// addresses are used. Command starts the hook instead.
	Hook    string
	Command []string
	// Live is a cluster to read the observed objects from. If it is nil, they come from the files.
	Live *rest.Config
	// UntilSettled lets the engine work until there is no more to do. Otherwise every parent is synced
	// once.
	UntilSettled bool
	// Delete deletes the parents when they have settled, and shows what follows.
	Delete bool
	// Ready lists the kinds of children that become ready between rounds.
	Ready []string
	// Rounds limits how often a parent is synced.
	Rounds int
	// Timeout limits the whole call.
	Timeout time.Duration
}

// UsageError says what is wrong with an option or a file.
type UsageError struct{ Problem string }

// Error returns one line for each fault.
func (e *UsageError) Error() string { return e.Problem }

// check returns the first wrong option.
func (o *Options) check() error {
	switch {
	case o.Hook != "" && len(o.Command) > 0:
		return &UsageError{"--hook: is given with a command after --, expected one of them"}
	case o.Rounds < 1:
		return &UsageError{"--rounds: expected a number from 1"}
	case o.Timeout <= 0:
		return &UsageError{"--timeout: expected a duration above 0"}
	}
	if _, err := o.address(); err != nil {
		return err
	}
	for _, kind := range o.Ready {
		if rules[kind] == nil && strings.ToLower(kind) == kind {
			return &UsageError{"--ready: got " + kind + ", expected kinds such as Deployment,Pod, or none"}
		}
	}
	return nil
}

// address returns Hook as host:port.
func (o *Options) address() (string, error) {
	expected := &UsageError{"--hook: got " + o.Hook + ", expected HOST:PORT or http://HOST:PORT of a hook in plain " +
		"text; the paths of webhooks, and TLS, are those of the controller"}
	address, plain := strings.CutPrefix(o.Hook, "http://")
	if address == "" && !plain {
		return "", nil
	}
	u, err := url.Parse("http://" + address)
	if err != nil || u.Port() == "" || u.Hostname() == "" || !slices.Contains([]string{"", "/"}, u.Path) {
		return "", expected
	}
	return u.Host, nil
}

// read reads the files.
func (o *Options) read() (*manifest.Set, error) {
	set, err := manifest.Read(o.Stdin, o.Files...)
	if err != nil {
		return nil, &UsageError{err.Error()}
	}
	return set, nil
}
