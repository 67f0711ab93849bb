package verify

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"
)

// silent returns the address of a server that accepts connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// free returns an address at which nothing listens. A socket holds its port, so that no parallel
// test gets it.
func free(t *testing.T) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(socket)
	t.Cleanup(func() { _ = syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port) //nolint:forcetypeassert // as it was bound
}

// TestUnreachable has addresses at which no such hook answers. Each has one finding, with the
// transport, the address, the cause, and a remedy.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	nothing := free(t)
	quiet := silent(t)
	grpcAddress := serveGRPC(t, &grpcHook{})
	plain := strings.TrimSuffix(strings.TrimPrefix(serveWebhook(t, nil), "http://"), "/sync")
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	authority := strings.TrimPrefix(secure.URL, "https://")
	const listens = "nothing listens there: start the hook, or correct --hook"
	for _, test := range []struct {
		name, address string
		insecure      bool
		want          string
	}{
		{"gRPC, nothing listens", nothing, true, "gRPC in plain text (--insecure) at " + nothing +
			": dial tcp " + nothing + ": connect: connection refused; " + listens},
		{"webhook, nothing listens", "http://" + nothing + "/sync", false, "POST in plain text at http://" + nothing +
			"/sync: dial tcp " + nothing + ": connect: connection refused; " + listens},
		{"no such host", "http://hook.invalid/sync", false, "; correct the host name in --hook"},
		{"gRPC in plain text, asked over TLS", grpcAddress, false, "; the server speaks plain text: add --insecure or"},
		{"webhook, asked by gRPC over TLS", plain, false, "gRPC over TLS at " + plain + ": tls: first record"},
		{"webhook, asked by gRPC", plain, true, "for a webhook, name its http:// URL"},
		{"gRPC, asked as a webhook", "http://" + grpcAddress + "/sync", false,
			"; the server speaks another protocol: name a gRPC hook as host:port"},
		{"webhook in plain text, asked over TLS", "https://" + plain + "/sync", false,
			"; the server speaks plain text: name an http:// URL"},
		{"unknown CA", "https://" + authority + "/sync", false, "; --ca names the CA of the hook"},
		{"gRPC over TLS, no answer", quiet, false, "; is the address reachable from here?"},
		{"webhook over TLS, no answer", "https://" + quiet + "/sync", false,
			"POST over TLS at https://" + quiet + "/sync: no connection within 100ms; is the address reachable from here?"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := Options{Addresses: []string{test.address}, Security: Security{Insecure: test.insecure}}
			if strings.HasSuffix(test.name, "no answer") {
				o.Timeout = 100 * time.Millisecond
			}
			report, err := Verify(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Findings) != 1 || report.Findings[0].ID != ruleUnreachable || !report.Unreachable() {
				t.Fatalf("got other findings than one %s:\n%s", ruleUnreachable, text(t, report))
			}
			if got := report.Findings[0].Got; !strings.Contains(got, test.want) {
				t.Errorf("got %q, want it to contain %q", got, test.want)
			}
		})
	}
}

// TestReplayUnreachable replays a recording at an address without a hook: the message is that of
// verify.
func TestReplayUnreachable(t *testing.T) {
	t.Parallel()
	nothing := free(t)
	for address, want := range map[string]string{
		nothing:                       "gRPC in plain text (--insecure) at " + nothing + ": ",
		"http://" + nothing + "/sync": "POST in plain text at http://" + nothing + "/sync: ",
	} {
		report, err := Replay(t.Context(), ReplayOptions{
			Files: []string{"../../../../sdk/testdata/recording.json"}, Addresses: []string{address},
			Security: Security{Insecure: !isURL(address)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := report.Replayed[0].Error; !strings.HasPrefix(got, want) || !strings.Contains(got, "start the hook") {
			t.Errorf("got %q, want %q with the cause and what to do", got, want)
		}
	}
}
