//go:build !linux

package footprint

// dropProgramPages does nothing: only Linux lists the mappings of a process.
func dropProgramPages() error { return nil }
