package endpoint

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
)

// Sockets are the folders in which hooks may listen on unix sockets. Without any, no hook may: the
// engine can reach the sockets of its machine, such as that of the container runtime, and a
// controller's author should not choose among them.
type Sockets []string

// SocketPath returns the path of a socket from an address such as unix:///run/hooks/hello.sock. It
// reports whether the address is one of a unix socket.
func SocketPath(address string) (path string, found bool) {
	rest, found := strings.CutPrefix(address, "unix:")
	if !found {
		return "", false
	}
	if strings.HasPrefix(rest, "//") && !strings.HasPrefix(rest, "///") {
		return "", true // a host in the address has no meaning
	}
	return strings.TrimPrefix(rest, "//"), true
}

// Check returns an error unless the path is absolute and lies in one of the folders. It reads
// nothing: the socket may appear later. field names the spec's field in the error.
func (s Sockets) Check(field, path string) error {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return fmt.Errorf("%s: expected the absolute path of a unix socket, such as unix:///run/hooks/hello.sock", field)
	}
	if path != filepath.Clean(path) {
		return fmt.Errorf("%s: %q; expected a path without \"..\" and empty parts", field, path)
	}
	if !slices.ContainsFunc(s, func(folder string) bool { return below(filepath.Clean(folder), path) }) {
		return fmt.Errorf("%s: %q is in no folder that --hook-socket-folders names; expected a socket in %s", field, path,
			s.list())
	}
	return nil
}

// Dial connects to a socket that Check has accepted. It refuses a path that leads out of the folders
// by a symbolic link.
func (s Sockets) Dial(ctx context.Context, path string) (net.Conn, error) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	for _, folder := range s {
		realFolder, err := filepath.EvalSymlinks(folder)
		if err == nil && below(realFolder, target) {
			return new(net.Dialer).DialContext(ctx, "unix", target)
		}
	}
	return nil, fmt.Errorf("%s leads to %s, which is in no folder that --hook-socket-folders names; expected %s", path,
		target, s.list())
}

func (s Sockets) list() string {
	if len(s) == 0 {
		return "one of them, and there is none"
	}
	return strings.Join(s, " or ")
}

// below reports whether a clean path lies below a clean, absolute folder.
func below(folder, path string) bool {
	return filepath.IsAbs(folder) && strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
