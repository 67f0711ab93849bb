package hook

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
)

// listen listens on an address as in ServeOptions.Listen: host:port, or unix:///path.
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

// removeStale removes a socket that no process serves. A killed process leaves its socket behind,
// and the next one could not listen there.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		return nil // Listen will report any other error
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err == nil {
		return conn.Close() // somebody serves it: Listen will report that
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return os.Remove(path)
	}
	return nil
}
