// Package rbac computes the roles that the controllers of files need, as "hookloop rbac" prints
// them, and asks a cluster which of their rights are missing.
//
// The rights on parents and children come from the engine's own table (internal/engine/rights), the
// engine's own rights from the manifests that install it. New is pure; only Missing makes requests,
// and they change nothing. An integration test runs an engine with the printed roles alone.
package rbac
