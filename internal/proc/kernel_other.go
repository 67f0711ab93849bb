//go:build !linux

package proc

import "syscall"

// dieWithParent does nothing: only Linux has a parent-death signal.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// awaitStop does nothing: the kernel stops the threads soon after the signal.
func awaitStop(int) error { return nil }
