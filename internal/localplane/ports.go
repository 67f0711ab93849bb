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

// We take ports from below the kernel's range for outgoing connections (32768 and up on Linux).
// Otherwise a connection could take a port before the process listens, or while a killed process is
// being restarted.
const (
	firstPort = 10000
	portCount = 312 * portBlock
	portBlock = 64
)

// search remembers where this process looks for ports. It goes from block to block.
var search struct {
	mu     sync.Mutex // guards the fields below
	begun  bool
	offset int // of the next port
	// locks holds the locks of the blocks. This process keeps them until it ends.
	locks []*os.File
}

// FreePorts returns n TCP ports that are free on loopback. It never returns the same port twice in
// a process, nor a port of a block that another running process uses: a port may look free while a
// program is being started. If the temporary folder cannot be written, processes that run at the
// same time merely start to look at different ports.
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

// lockBlock reserves a block of ports for this process. It returns false if another process has it.
// If no lock file can be made, nobody has reserved it.
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

// unlockBlocks releases all blocks but the first n.
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
