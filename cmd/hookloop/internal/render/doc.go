// Package render shows what controllers would do to parents, without a cluster: the engine of
// package server runs against the API server in memory (package memapi) with the objects of files.
//
// Render reads the files, starts the hook if it is a command, lets the engine take one key at a
// time until one round is done or nothing is left to do, and returns the writes in their order, the
// changed objects, the parents' status and Events. It decides nothing about children: that is the
// engine's.
//
// Render may be called once at a time. It is tested with hooks in processes of their own, by golden
// files.
package render
