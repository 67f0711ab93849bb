package localplane

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// Ports come from below the kernel's range for outgoing connections (32768 and up on Linux).
// Otherwise a connection could take a port before the process listens, or while a killed process is
// not yet restarted.
const (
	firstPort = 10000
	portCount = 312 * portBlock
	portBlock = 64
)

// search is the search of this process for ports. It goes from block to block.
var search struct {
	mu     sync.Mutex // guards the fields below
	begun  bool
	offset int // of the next port
	// locks are those of the blocks, which this process holds until it ends.
	locks []*os.File
}

// FreePorts returns n TCP ports that are free on loopback. It never returns a port twice in one
// process, nor a port from a block of another process that runs: a port may be free because a
// program is not yet started, or is being restarted. If the system's temporary folder cannot be
// written, processes that run at the same time only begin at different ports.
func FreePorts(n int) ([]int, error) {
	search.mu.Lock()
	defer search.mu.Unlock()
	if !search.begun {
		search.begun, search.offset = true, os.Getpid()*portBlock%portCount
	}
	before := len(search.locks)
	var found []int
	for tried := 0; tried < portCount && len(found) < n; {
		step := portBlock
		if search.offset%portBlock != 0 || lockBlock(search.offset/portBlock) {
			step = 1
			if port := firstPort + search.offset; free(port) {
				found = append(found, port)
			}
		}
		search.offset = (search.offset + step) % portCount
		tried += step
	}
	if len(found) == n {
		return found, nil
	}
	unlockBlocks(before)
	return nil, fmt.Errorf("127.0.0.1 has %d free ports from %d to %d, want %d", len(found), firstPort,
		firstPort+portCount-1, n)
}

// lockBlock takes a block of ports for this process. It reports false if a process has it already.
// Without a lock file no process has it.
func lockBlock(block int) bool {
	folder := filepath.Join(os.TempDir(), "hookloop-ports")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return true
	}
	name := filepath.Join(folder, strconv.Itoa(firstPort+block*portBlock))
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDONLY, 0o600) //nolint:gosec // the name is a number
	if err != nil {
		return true
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close() // nothing was written
		return !errors.Is(err, syscall.EWOULDBLOCK)
	}
	search.locks = append(search.locks, file)
	return true
}

// unlockBlocks gives the blocks after the first n back.
func unlockBlocks(n int) {
	for _, file := range search.locks[n:] {
		_ = file.Close() // nothing was written
	}
	search.locks = search.locks[:n]
}

func free(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
