package localplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// tempPattern names the temporary folders of clusters.
const tempPattern = "hookloop-cluster-*"

// leftovers lists the files of an earlier cluster that the next one must not read. Other files are
// overwritten.
var leftovers = []string{
	"etcd-data", "kubectl-cache", "audit.log", "etcd.log", "kube-apiserver.log", "kube-controller-manager.log",
}

// makeDir makes the cluster's folder and locks it until the cluster or this process ends.
func (c *Cluster) makeDir(context.Context) (err error) {
	if c.dir == "" {
		c.dir, c.lock, err = makeTempDir()
		c.remove = err == nil
		return err
	}
	c.dir, err = filepath.Abs(c.dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	c.lock, err = lockDir(c.dir)
	if err != nil {
		return fmt.Errorf("folder %s is in use by another control plane: %w", c.dir, err)
	}
	for _, name := range leftovers {
		if err := os.RemoveAll(c.path(name)); err != nil {
			return err
		}
	}
	return nil
}

// removeDir removes a temporary folder and releases the lock.
func (c *Cluster) removeDir() error {
	var errs []error
	if c.remove {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	if c.lock != nil {
		errs = append(errs, c.lock.Close())
		c.lock = nil
	}
	return errors.Join(errs...)
}

// makeTempDir makes a temporary folder and locks it. First it removes the folders of processes that
// were killed. Before it is locked, the new folder may look like one of these to a process that
// starts at the same time; then we make another one.
func makeTempDir() (string, *os.File, error) {
	sweepTempDirs()
	for {
		dir, err := os.MkdirTemp("", tempPattern)
		if err != nil {
			return "", nil, err
		}
		lock, err := lockDir(dir)
		if err == nil {
			return dir, lock, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EWOULDBLOCK) {
			return "", nil, err
		}
	}
}

// sweepTempDirs removes folders that nobody has locked. It skips those that it may not remove, such
// as another user's.
func sweepTempDirs() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), tempPattern)) // the only error is a bad pattern
	for _, dir := range dirs {
		if lock, err := lockDir(dir); err == nil {
			_ = os.RemoveAll(dir) // the next start tries again
			_ = lock.Close()      // the file is only open for its lock
		}
	}
}

// lockDir locks a folder against other processes, without waiting. The kernel releases the lock
// when the process ends, and children do not inherit it. The error is fs.ErrNotExist if the folder
// has vanished, and syscall.EWOULDBLOCK if it is locked.
func lockDir(dir string) (*os.File, error) {
	// O_DIRECTORY: to open a FIFO of the name would block
	lock, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0) //nolint:gosec // the caller's folder, or our own
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		_, err = os.Stat(dir)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}
