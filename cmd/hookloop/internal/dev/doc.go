// Package dev runs "hookloop dev": a session that lets you change a hook and see at once what it
// does. Call [Run] with [Options].
//
// A session runs an engine in this process, with the controllers from your files, on your cluster
// or on a local control plane. It starts the hook as a child process, restarts it when its files
// change, and prints a line for each sync. It applies the CRDs in your files to the cluster, and
// removes them at the end if you ask for it. No process is left behind.
package dev
