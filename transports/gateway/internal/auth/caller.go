package auth

import (
	"context"
	"fmt"
)

// How a caller can authenticate.
const (
	ByToken       = "token"
	ByCertificate = "certificate"
)

// Caller is an authenticated caller. It is immutable and contains no credential, so that it can be
// shared.
type Caller struct {
	// Name, UID, Groups and Extra come from the API server's user info.
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
	// By is ByToken or ByCertificate.
	By string
}

// String returns the caller's name and how it was authenticated.
func (c *Caller) String() string { return fmt.Sprintf("User %q (by %s)", c.Name, c.By) }

type callerKey struct{}

// FromContext returns the caller of a call. The server's interceptors have authenticated it.
func FromContext(ctx context.Context) (*Caller, bool) {
	caller, ok := ctx.Value(callerKey{}).(*Caller)
	return caller, ok
}
