package verify

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"regexp"
	"strings"
	"sync/atomic"
)

// tried describes how a target is called.
func (t *target) tried() string {
	switch {
	case strings.HasPrefix(t.address, "https://"):
		return "POST over TLS"
	case t.grpc == nil:
		return "POST in plain text"
	case t.field["insecure"] == true:
		return "gRPC in plain text (--insecure)"
	}
	return "gRPC over TLS"
}

// unreachable explains why a target gave no answer: the transport, the address, the cause, and a
// remedy.
func (t *target) unreachable(cause string) string {
	cause, _, _ = strings.Cut(cause, "malformed HTTP response \"") // the bytes are another protocol's
	cause, _, _ = strings.Cut(cause, ": Unavailable: \"")          // gRPC's cause, once more
	return fmt.Sprintf("%s at %s: %s%s", t.tried(), t.address, strings.TrimSuffix(cause, ": "), t.advice(cause))
}

// causes are parts of errors of connections, each with its remedy for a gRPC hook and for a
// webhook.
var causes = []struct{ text, grpc, webhook string }{
	{"connection refused", "nothing listens there: start the hook, or correct --hook",
		"nothing listens there: start the hook, or correct --hook"},
	{"no such host", "correct the host name in --hook", "correct the host name in --hook"},
	{"look like a TLS handshake", "the server speaks plain text: add --insecure or, for a webhook, name its http:// URL",
		"the server speaks plain text: name an http:// URL"},
	{"gave HTTP response", "", "the server speaks plain text: name an http:// URL"},
	{"does not speak TLS", "the server speaks plain text: add --insecure or, for a webhook, name its http:// URL", ""},
	{"x509: ", "--ca names the CA of the hook, --server-name the name in its certificate",
		"--ca names the CA of the hook, --server-name the name in its certificate"},
	{"frame too large", "the server speaks HTTP/1: for a webhook, name its http:// URL", ""},
	{"no gRPC server sends", "for a webhook, name its URL", ""},
	{"transport connection broken", "",
		"the server speaks another protocol: name a gRPC hook as host:port, and a hook with TLS by an https:// URL"},
	{noConnection, "is the address reachable from here?", "is the address reachable from here?"},
}

// noConnection begins the cause of a call that has ended before it had a connection.
const noConnection = "no connection within"

// ended matches the causes of connections that end without an answer.
var ended = regexp.MustCompile(`EOF|connection reset|broken pipe|stream error|http2|grpc-status|closed the connection`)

// advice is the remedy for a cause.
func (t *target) advice(cause string) string {
	for _, known := range causes {
		remedy := known.webhook
		if t.grpc != nil {
			remedy = known.grpc
		}
		if strings.Contains(cause, known.text) && remedy != "" {
			return "; " + remedy
		}
	}
	switch secure := t.field["insecure"] == false || strings.HasPrefix(t.address, "https://"); {
	case !ended.MatchString(cause):
	case !secure && t.grpc != nil:
		return "; the hook may expect TLS; for a webhook, name its http:// URL"
	case !secure:
		return "; the hook may expect TLS"
	case t.field["clientTLS"] == nil:
		return "; the hook may expect a client certificate: --cert and --key"
	}
	return ""
}

// connection reports whether a call has had a connection.
type connection struct{ got atomic.Bool }

// trace returns a context for the call.
func (c *connection) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { c.got.Store(true) },
	})
}
