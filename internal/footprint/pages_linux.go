package footprint

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// dropProgramPages unmaps the pages of the program's code and constants from the process. They stay
// in the kernel's page cache; a page that is used is mapped again. Most of those that are resident
// after the start are not: the kernel maps the neighbours of each page, and initialization touches
// packages that only other commands use.
func dropProgramPages() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer maps.Close() //nolint:errcheck // it was only read
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		m, ok := parseMapping(lines.Text())
		if !ok || m.file != program || !m.constant {
			continue
		}
		_, _, fault := syscall.Syscall(syscall.SYS_MADVISE, m.start, m.end-m.start, syscall.MADV_DONTNEED)
		if fault != 0 {
			return fmt.Errorf("madvise %x-%x: %w", m.start, m.end, fault)
		}
	}
	return lines.Err()
}

// mapping is a line of /proc/self/maps.
type mapping struct {
	start, end uintptr
	// constant reports that the mapping is private and cannot be written. Pages of another one may
	// differ from the file, and would be lost.
	constant bool
	file     string
}

func parseMapping(line string) (m mapping, ok bool) {
	var permissions, offset, device, inode string
	n, err := fmt.Sscanf(line, "%x-%x %s %s %s %s", &m.start, &m.end, &permissions, &offset, &device, &inode)
	if err != nil || n != 6 {
		return m, false
	}
	m.constant = permissions == "r-xp" || permissions == "r--p"
	if at := strings.IndexByte(line, '/'); at >= 0 {
		m.file = line[at:]
	}
	return m, true
}
