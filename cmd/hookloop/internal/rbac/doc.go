// Package rbac computes the roles that controllers need, for "hookloop rbac". Call [New] with the
// files, then write the roles with WriteYAML, or call Missing to ask a cluster which rights it does
// not grant.
//
// The rights on parents and children come from the engine's own table (package engine/rights), and
// the engine's own rights from the manifests that install it. Only Missing sends requests, and they
// change nothing.
package rbac
