package endpoint

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSocketPath(t *testing.T) {
	for address, want := range map[string]string{
		"unix:///run/a.sock": "/run/a.sock",
		"unix:/run/a.sock":   "/run/a.sock",
		"unix:a.sock":        "a.sock",
		"unix://host/a.sock": "",
	} {
		if got, found := SocketPath(address); got != want || !found {
			t.Errorf("%s: got %q, %t, want %q", address, got, found, want)
		}
	}
	for _, address := range []string{"unixhost:9443", "dns:///unix", "unix-abstract:a", "http://unix/a"} {
		if got, found := SocketPath(address); found {
			t.Errorf("%s: got socket %q, want none", address, got)
		}
	}
}

func TestSocketsMustBeInAFolder(t *testing.T) {
	for path, want := range map[string]string{
		"/run/hooks/a.sock":      "",
		"/run/hooks/deep/a.sock": "",
		"/srv/a.sock":            "",
		"/run/hooks":             "--hook-socket-folders",
		"/run/hooksa.sock":       "--hook-socket-folders",
		"/run/a.sock":            "--hook-socket-folders names; expected a socket in /run/hooks or /srv/",
		"/run/hooks/../a.sock":   `without ".."`,
		"/run/hooks//a.sock":     `without ".."`,
		"run/hooks/a.sock":       "absolute path",
		"":                       "absolute path",
		"/run/hooks/a\x00.sock":  "absolute path",
		"@abstract":              "absolute path",
	} {
		err := Sockets{"/run/hooks", "/srv/"}.Check("target", path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", path, err, want)
		}
	}
	if err := (Sockets{}).Check("url", "/run/hooks/a.sock"); err == nil || !strings.HasPrefix(err.Error(), "url: ") {
		t.Errorf("got %v without a folder, want a refusal", err)
	}
	if err := (Sockets{"run"}).Check("url", "/run/a.sock"); err == nil {
		t.Error("a relative folder counts")
	}
}

// TestSymbolicLinks dials sockets through links. One that leads out of the folder is refused; a
// folder that is a link itself is not.
func TestSymbolicLinks(t *testing.T) {
	base := t.TempDir()
	for _, folder := range []string{"hooks", "outside"} {
		if err := os.Mkdir(filepath.Join(base, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("unix", filepath.Join(base, folder, "a.sock"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
	}
	for from, to := range map[string]string{
		"hooks/inside.sock": "a.sock",
		"hooks/escape.sock": "../outside/a.sock",
		"hooks/escape":      "../outside",
		"link":              "hooks",
	} {
		if err := os.Symlink(to, filepath.Join(base, from)); err != nil {
			t.Fatal(err)
		}
	}
	sockets := Sockets{filepath.Join(base, "hooks"), filepath.Join(base, "link"), filepath.Join(base, "missing")}
	for path, want := range map[string]string{
		"hooks/a.sock":        "",
		"hooks/inside.sock":   "",
		"link/a.sock":         "",
		"hooks/escape.sock":   "--hook-socket-folders",
		"hooks/escape/a.sock": "--hook-socket-folders",
		"link/escape/a.sock":  "--hook-socket-folders",
		"hooks/missing.sock":  "no such file",
	} {
		conn, err := sockets.Dial(t.Context(), filepath.Join(base, path))
		if err == nil {
			_ = conn.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}
