package server

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logger returns a logger that writes structured lines to w. Verbosity n of logr is zap's level -n.
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
	core := zapcore.NewCore(l.encoder(), zapcore.Lock(zapcore.AddSync(w)), level)
	return zapr.NewLoggerWithOptions(zap.New(core, zap.AddStacktrace(stack)),
		zapr.ErrorKey("err"), zapr.LogInfoLevel("")), nil
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

// encoder returns the encoder of lines, with the keys ts, level, msg and stacktrace.
func (l Log) encoder() zapcore.Encoder {
	config := zap.NewProductionEncoderConfig()
	config.EncodeLevel, config.EncodeTime = encodeLevel, timeEncoder(l.TimeEncoding)
	config.EncodeDuration = zapcore.NanosDurationEncoder
	if l.Encoder == "console" {
		return zapcore.NewConsoleEncoder(config)
	}
	return zapcore.NewJSONEncoder(config)
}

// parseLevel parses a level as zap's flags spell it. An empty text means info.
func parseLevel(text string) (zapcore.Level, error) {
	switch strings.ToLower(text) {
	case "", "info":
		return zapcore.InfoLevel, nil
	case "debug":
		return zapcore.DebugLevel, nil
	case "error":
		return zapcore.ErrorLevel, nil
	case "panic":
		return zapcore.PanicLevel, nil
	}
	verbosity, err := strconv.ParseInt(text, 10, 8)
	if err != nil || verbosity < 1 {
		return 0, errors.New("debug, info, error, panic or a verbosity above 0")
	}
	return zapcore.Level(-min(verbosity, maxVerbosity)), nil
}

// maxVerbosity limits how much client-go may log. Above it, client-go logs the bodies of requests,
// which may hold Secrets.
const maxVerbosity = 7

// encodeLevel writes "debug" for every verbosity above 0.
func encodeLevel(level zapcore.Level, out zapcore.PrimitiveArrayEncoder) {
	zapcore.LowercaseLevelEncoder(max(level, zapcore.DebugLevel), out)
}

// timeEncoder returns the encoder with this name, which should be one of timeEncodings.
func timeEncoder(name string) zapcore.TimeEncoder {
	switch name {
	case "epoch":
		return zapcore.EpochTimeEncoder
	case "millis":
		return zapcore.EpochMillisTimeEncoder
	case "nano":
		return zapcore.EpochNanosTimeEncoder
	case "iso8601":
		return zapcore.ISO8601TimeEncoder
	case "rfc3339":
		return zapcore.RFC3339TimeEncoder
	default:
		return zapcore.RFC3339NanoTimeEncoder
	}
}
