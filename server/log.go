package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
)

// levelPanic is above every level that is logged: "panic" switches the rest off.
const levelPanic = slog.LevelError + 4

// logger writes structured lines to w. Verbosity n of logr is slog's level -n, as in logr's own
// bridge.
func (l Log) logger(w io.Writer) (logr.Logger, error) {
	l = l.withDefaults()
	level, err := parseLevel(l.Level)
	if err != nil {
		return logr.Discard(), &FlagError{"zap-log-level", l.Level, err.Error()}
	}
	stack, err := parseLevel(l.StacktraceLevel)
	if err != nil {
		return logr.Discard(), &FlagError{"zap-stacktrace-level", l.StacktraceLevel, err.Error()}
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: l.replace}
	var handler slog.Handler = slog.NewJSONHandler(w, options)
	if l.Encoder == "console" {
		handler = slog.NewTextHandler(w, options)
	}
	return logr.FromSlogHandler(&stackHandler{handler, stack}), nil
}

func (l Log) withDefaults() Log {
	defaults := Log{Encoder: "json", Level: "info", StacktraceLevel: "panic", TimeEncoding: "rfc3339nano"}
	if l.Devel {
		defaults = Log{Encoder: "console", Level: "debug", StacktraceLevel: "error", TimeEncoding: "iso8601"}
	}
	for _, f := range []struct {
		value *string
		unset string
	}{
		{&l.Encoder, defaults.Encoder}, {&l.Level, defaults.Level},
		{&l.StacktraceLevel, defaults.StacktraceLevel}, {&l.TimeEncoding, defaults.TimeEncoding},
	} {
		if *f.value == "" {
			*f.value = f.unset
		}
	}
	return l
}

// parseLevel reads a level as zap's flags spell it; empty is info.
func parseLevel(text string) (slog.Level, error) {
	switch strings.ToLower(text) {
	case "", "info":
		return slog.LevelInfo, nil
	case "debug":
		return slog.LevelInfo - 1, nil
	case "error":
		return slog.LevelError, nil
	case "panic":
		return levelPanic, nil
	}
	verbosity, err := strconv.ParseInt(text, 10, 8)
	if err != nil || verbosity < 1 {
		return 0, errors.New("debug, info, error, panic or a verbosity above 0")
	}
	return slog.Level(-min(verbosity, maxVerbosity)), nil
}

// maxVerbosity is the last level at which client-go writes no bodies of requests to the log:
// Secrets would be among them.
const maxVerbosity = 7

// replace writes time and level as zap does: key "ts", levels in lower case.
func (l Log) replace(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		return slog.Attr{Key: "ts", Value: encodeTime(l.TimeEncoding, a.Value.Time())}
	case slog.LevelKey:
		if level, ok := a.Value.Any().(slog.Level); ok {
			return slog.String("level", levelName(level))
		}
	}
	return a
}

func levelName(level slog.Level) string {
	switch {
	case level >= slog.LevelError:
		return "error"
	case level >= slog.LevelWarn:
		return "warn"
	case level >= slog.LevelInfo:
		return "info"
	default:
		return "debug"
	}
}

func encodeTime(encoding string, t time.Time) slog.Value {
	switch encoding {
	case "epoch":
		return slog.Float64Value(float64(t.UnixNano()) / float64(time.Second))
	case "millis":
		return slog.Float64Value(float64(t.UnixNano()) / float64(time.Millisecond))
	case "nano":
		return slog.Int64Value(t.UnixNano())
	case "iso8601":
		return slog.StringValue(t.Format("2006-01-02T15:04:05.000Z0700"))
	case "rfc3339":
		return slog.StringValue(t.Format(time.RFC3339))
	default:
		return slog.StringValue(t.Format(time.RFC3339Nano))
	}
}

// stackHandler adds the call stack to records at or above a level.
type stackHandler struct {
	slog.Handler
	level slog.Level
}

// Handle passes the record on, with its stack where the level asks for one. The check is needed
// because logr's Error asks nobody whether errors are logged.
func (h *stackHandler) Handle(ctx context.Context, r slog.Record) error {
	if !h.Enabled(ctx, r.Level) {
		return nil
	}
	if r.Level >= h.level {
		r = r.Clone()
		r.AddAttrs(slog.String("stacktrace", stackFrom(r.PC)))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps the wrapper around the derived handler.
func (h *stackHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &stackHandler{h.Handler.WithAttrs(attrs), h.level}
}

// WithGroup keeps the wrapper around the derived handler.
func (h *stackHandler) WithGroup(name string) slog.Handler {
	return &stackHandler{h.Handler.WithGroup(name), h.level}
}

// stackFrom is the stack of this goroutine, one function and line each, from the caller at pc
// upwards.
func stackFrom(pc uintptr) string {
	pcs := make([]uintptr, 64)
	pcs = pcs[:runtime.Callers(1, pcs)]
	for i, p := range pcs {
		if p == pc {
			pcs = pcs[i:]
			break
		}
	}
	var out strings.Builder
	frames := runtime.CallersFrames(pcs)
	for {
		frame, more := frames.Next()
		fmt.Fprintf(&out, "%s\n\t%s:%d\n", frame.Function, frame.File, frame.Line)
		if !more {
			return strings.TrimSuffix(out.String(), "\n")
		}
	}
}
