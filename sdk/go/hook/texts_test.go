package hook_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// maxText is the length in bytes of the longest text of an error, which unary calls carry in a
// header.
const maxText = 1100

// TestErrorsOfAnyText sends texts that protobuf cannot encode, or that are too large for a header,
// over a stream and by a unary call. They end only their call.
func TestErrorsOfAnyText(t *testing.T) {
	for name, text := range map[string]string{
		"invalid UTF-8": "the name is \xff\xfe", "large": "the name is " + strings.Repeat("ü", 9<<20),
	} {
		for kind, f := range map[string]func() error{
			"an error":    func() error { return errors.New(text) },
			"a rejection": func() error { return hook.Reject("BadName", "%s", text) },
			"a panic":     func() error { panic(text) },
		} {
			t.Run(name+" in "+kind, func(t *testing.T) {
				options := hook.ServeOptions{Options: hook.Options{Log: slog.New(slog.DiscardHandler)}}
				connection, _ := start(t, options, hook.Composite{
					Sync: func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) { return nil, f() },
				})
				check := func(over string, code codes.Code, text string) {
					t.Helper()
					if code != codes.Internal && code != codes.FailedPrecondition ||
						!strings.Contains(text, "the name is ") || len(text) > maxText || !utf8.ValidString(text) {
						t.Errorf("%s: got %s with %d bytes: %.100q", over, code, len(text), text)
					}
				}
				_, err := compositev1.NewCompositeHookServiceClient(connection).Sync(t.Context(), request())
				check("a unary call", status.Code(err), status.Convert(err).Message())
				e := hello(t, connection, newEngine("s"))
				e.Ask(questionAbout("a"))
				e.send()
				m, err := e.stream.Recv()
				if err != nil {
					t.Fatalf("the stream has ended: %.200s", err)
				}
				refused := m.GetAnswer().GetError()
				check("a stream", codes.Code(refused.GetCode()), refused.GetMessage())
			})
		}
	}
}
