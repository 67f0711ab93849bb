package auth

import (
	"context"
	"fmt"
)

// Methods of authentication.
const (
	ByToken       = "token"
	ByCertificate = "certificate"
)

// Caller is an authenticated caller. It is shared and immutable, and contains no credential.
type Caller struct {
	// Name, UID, Groups and Extra have the values of the API server's user info.
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
	// By is the method of authentication: ByToken or ByCertificate.
	By string
}

// String returns the caller's name and method of authentication.
func (c *Caller) String() string { return fmt.Sprintf("User %q (by %s)", c.Name, c.By) }

type callerKey struct{}

// FromContext returns the caller of a call that the server's interceptors have authenticated.
func FromContext(ctx context.Context) (*Caller, bool) {
	caller, ok := ctx.Value(callerKey{}).(*Caller)
	return caller, ok
}
