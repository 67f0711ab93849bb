// Package dev is the inner loop of "hookloop dev": an engine in this process that runs the
// controllers of files on the user's cluster, the hook as a child process that is restarted when
// its files change, and a line for each sync.
//
// It decides nothing about objects: the engine is package server's, the controllers are in memory
// (package overlay), the hook's process is package hookprocess's. It writes the CRDs of the files
// to the cluster itself, and removes them on request. One Run is one session; it leaves no process
// behind. It is tested on a real control plane (test/integration).
package dev
