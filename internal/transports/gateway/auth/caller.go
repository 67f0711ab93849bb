package auth

import (
	"context"
	"fmt"
)

// How a caller was recognized.
const (
	ByToken       = "token"
	ByCertificate = "certificate"
)

// Caller is who makes a call. It is shared, and never changed. It holds nothing by which one could
// call in the caller's name.
type Caller struct {
	// Name, UID, Groups and Extra are as the API server has them in its own requests.
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
	// By is how the caller was recognized: ByToken or ByCertificate.
	By string
}

// String is the caller's name and how it was recognized.
func (c *Caller) String() string { return fmt.Sprintf("User %q (by %s)", c.Name, c.By) }

type callerKey struct{}

// FromContext is the caller of a call that the interceptors of ServerOptions have let in.
func FromContext(ctx context.Context) (*Caller, bool) {
	caller, ok := ctx.Value(callerKey{}).(*Caller)
	return caller, ok
}
