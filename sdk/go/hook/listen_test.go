package hook

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestListenOnASocketAgain listens on a unix socket that a killed process has left behind. A socket
// that is served, and a file of another type, are left alone.
func TestListenOnASocketAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hook.sock")
	killed, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	killed.SetUnlinkOnClose(false)
	if err := killed.Close(); err != nil {
		t.Fatal(err)
	}
	listener, err := listen(t.Context(), "unix://"+path)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := listen(t.Context(), "unix://"+path); err == nil {
		_ = second.Close()
		t.Error("two servers listen on one socket")
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if second, err := listen(t.Context(), "unix://"+path); err == nil {
		_ = second.Close()
		t.Error("a file was replaced by a socket")
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
