package proc

import (
	"os"
	"syscall"
)

// WriteProgram writes an executable file that can be executed immediately. Linux refuses to execute
// a file while a process has it open for writing, and a child that this process starts meanwhile
// would have it open until it executes its own program (golang/go#22315). So none is started.
func WriteProgram(path string, content []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, 0o700) //nolint:gosec // it is to be executed
}
