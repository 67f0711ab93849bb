package panics_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/hookloop/hookloop/internal/panics"
	"k8s.io/klog/v2"
)

func TestRecover(t *testing.T) {
	for name, test := range map[string]struct {
		f    func() error
		want string
	}{
		"a panic":            {func() error { panic("no luck") }, "panic: no luck"},
		"a panic with error": {func() error { panic(errors.New("no luck")) }, "panic: no luck"},
		"an error":           {func() error { return errors.New("refused") }, "refused"},
		"neither":            {func() error { return nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			ctx := klog.NewContext(t.Context(), logr.FromSlogHandler(slog.NewTextHandler(&log, nil)))
			err := func() (err error) {
				defer panics.Recover(ctx, &err, "panic in a test", "key", "web")
				return test.f()
			}()
			if got := text(err); got != test.want {
				t.Errorf("error is %q, want %q", got, test.want)
			}
			var recovered *panics.Error
			if panicked := errors.As(err, &recovered); panicked != (log.Len() > 0) {
				t.Errorf("panicked is %v, the log is %q", panicked, log.String())
			}
			out := log.String()
			if out != "" && (!strings.Contains(out, "key=web") || !strings.Contains(out, "panics_test.go")) {
				t.Errorf("the log lacks the key or the stack: %s", out)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
