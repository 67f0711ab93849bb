package server

import (
	"fmt"
	"os"
	"strings"

	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"
)

// grpcLog writes gRPC's own lines to the process's logger, as lines of its format. Only errors
// appear at the default level, as with gRPC's own logger.
type grpcLog struct{}

var _ grpclog.LoggerV2 = grpcLog{}

// gRPC accepts a logger only before it is used.
func init() { grpclog.SetLoggerV2(grpcLog{}) } //nolint:gochecknoinits // see above

// The verbosities of gRPC's lines.
const (
	grpcWarnings = 4
	grpcInfos    = 6
)

func (grpcLog) Info(args ...any)                 { grpcLine(grpcInfos, fmt.Sprint(args...)) }
func (grpcLog) Infoln(args ...any)               { grpcLine(grpcInfos, fmt.Sprintln(args...)) }
func (grpcLog) Infof(format string, args ...any) { grpcLine(grpcInfos, fmt.Sprintf(format, args...)) }
func (grpcLog) Warning(args ...any)              { grpcLine(grpcWarnings, fmt.Sprint(args...)) }
func (grpcLog) Warningln(args ...any)            { grpcLine(grpcWarnings, fmt.Sprintln(args...)) }
func (grpcLog) Warningf(format string, args ...any) {
	grpcLine(grpcWarnings, fmt.Sprintf(format, args...))
}
func (grpcLog) Error(args ...any)                 { grpcError(fmt.Sprint(args...)) }
func (grpcLog) Errorln(args ...any)               { grpcError(fmt.Sprintln(args...)) }
func (grpcLog) Errorf(format string, args ...any) { grpcError(fmt.Sprintf(format, args...)) }
func (grpcLog) Fatal(args ...any)                 { grpcFatal(fmt.Sprint(args...)) }
func (grpcLog) Fatalln(args ...any)               { grpcFatal(fmt.Sprintln(args...)) }
func (grpcLog) Fatalf(format string, args ...any) { grpcFatal(fmt.Sprintf(format, args...)) }

// V reports whether gRPC prepares lines of its verbosity.
func (grpcLog) V(level int) bool { return klog.Background().V(grpcInfos + level).Enabled() }

func grpcLine(verbosity int, text string) {
	klog.Background().V(verbosity).Info(strings.TrimSpace(text), "logger", "grpc")
}

func grpcError(text string) {
	klog.Background().Error(nil, strings.TrimSpace(text), "logger", "grpc")
}

// grpcFatal ends the process, as gRPC requires.
func grpcFatal(text string) {
	grpcError(text)
	os.Exit(1)
}
