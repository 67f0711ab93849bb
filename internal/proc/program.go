package proc

import (
	"os"
	"syscall"
)

// WriteProgram writes a file that can be executed at once. While it writes, this process starts no
// child: Linux refuses to execute a file that a process has open for writing, and a child would
// have it open until it executes its own program (golang/go#22315).
func WriteProgram(path string, content []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, 0o700) //nolint:gosec // it is to be executed
}
