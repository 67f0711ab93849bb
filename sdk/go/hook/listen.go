package hook

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
)

// listen opens the address of ServeOptions.Listen: host:port, or unix:///path.
func listen(ctx context.Context, address string) (net.Listener, error) {
	path, isSocket := strings.CutPrefix(address, "unix://")
	if !isSocket {
		return new(net.ListenConfig).Listen(ctx, "tcp", address)
	}
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	return new(net.ListenConfig).Listen(ctx, "unix", path)
}

// removeStale removes a socket that nobody serves any more: a process that is killed leaves its
// socket behind, and the next one could not listen there.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		return nil // Listen has the error for any other file
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err == nil {
		return conn.Close() // somebody serves it: Listen has the error
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return os.Remove(path)
	}
	return nil
}
