package localplane

import (
	"fmt"
	"net"
	"os"
	"sync"
)

// Ports come from below the kernel's range for outgoing connections (32768 and up on Linux).
// Otherwise a connection could take a port before the process listens, or while a killed process is
// not yet restarted.
const (
	firstPort = 10000
	portCount = 20000
	portBlock = 64
)

// lastPort is the port at which the search of this process continues.
var lastPort struct {
	mu     sync.Mutex // guards offset
	offset int
}

// FreePorts returns n TCP ports that are free on loopback. It never returns a port twice in one
// process. Processes that run at the same time begin at different ports.
func FreePorts(n int) ([]int, error) {
	lastPort.mu.Lock()
	defer lastPort.mu.Unlock()
	if lastPort.offset == 0 {
		lastPort.offset = os.Getpid() * portBlock
	}
	var found []int
	for range portCount {
		if len(found) == n {
			return found, nil
		}
		port := firstPort + lastPort.offset%portCount
		lastPort.offset++
		if free(port) {
			found = append(found, port)
		}
	}
	return nil, fmt.Errorf("127.0.0.1 has %d free ports from %d to %d, want %d", len(found), firstPort,
		firstPort+portCount-1, n)
}

func free(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
