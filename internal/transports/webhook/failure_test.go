package webhook

import (
	"errors"
	"io"
	"net/url"
	"testing"
)

// TestCause checks that the cause of a failed request has no URL, and no text without a meaning.
func TestCause(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"end of the connection": {&url.Error{Op: "Post", URL: "http://hook/sync?token=a", Err: io.EOF}, "EOF"},
		"another protocol": {
			&url.Error{Op: "Post", URL: "http://hook/sync", Err: errors.New("readLoopPeekFailLocked: %!w(<nil>)")},
			errNotHTTP1.Error(),
		},
		"an error of a body": {io.ErrUnexpectedEOF, "unexpected EOF"},
	} {
		if got := Cause(c.err); got.Error() != c.want {
			t.Errorf("%s: the cause is %q, want %q", name, got, c.want)
		}
	}
}
