package webhook

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
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

// TestSwitchingProtocols checks that a hook that answers with another protocol, and then with
// nothing, does not hold a call.
func TestSwitchingProtocols(t *testing.T) {
	ended := make(chan struct{})
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = connection.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"))
		<-ended
		_ = connection.Close()
	}))
	defer close(ended)
	failed := make(chan *hook.Error, 1)
	go func() { failed <- ask(t, "v1", string(field(server.URL, "1s"))) }()
	select {
	case err := <-failed:
		if want := "status 101"; err.Err.Error() != want {
			t.Errorf("the error is %q, want %q", err.Err, want)
		}
	case <-time.After(time.Minute):
		t.Fatal("the call has not ended")
	}
}

// TestNoTLS checks the error of a hook that serves http at an address with https.
func TestNoTLS(t *testing.T) {
	server := serve(t, http.NotFoundHandler())
	err := ask(t, "v1", string(field(strings.Replace(server.URL, "http:", "https:", 1), "")))
	if !errors.Is(err, http.ErrSchemeMismatch) {
		t.Errorf("the error is %v, want %v", err, http.ErrSchemeMismatch)
	}
}
