package server

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"
)

// grpcLog passes gRPC's log lines to the process's logger, so that they have the same format. As
// with gRPC's own logger, only errors appear at the default level.
type grpcLog struct{ logger func() logr.Logger }

var _ grpclog.LoggerV2 = grpcLog{}

// gRPC accepts a logger only before it is used.
func init() { grpclog.SetLoggerV2(grpcLog{klog.Background}) } //nolint:gochecknoinits // see above

// These are the verbosities at which gRPC's lines are logged.
const (
	grpcWarnings = 4
	grpcInfos    = 6
)

func (g grpcLog) Info(args ...any)                 { g.line(grpcInfos, fmt.Sprint(args...)) }
func (g grpcLog) Infoln(args ...any)               { g.line(grpcInfos, fmt.Sprintln(args...)) }
func (g grpcLog) Infof(format string, args ...any) { g.line(grpcInfos, fmt.Sprintf(format, args...)) }
func (g grpcLog) Warning(args ...any)              { g.line(grpcWarnings, fmt.Sprint(args...)) }
func (g grpcLog) Warningln(args ...any)            { g.line(grpcWarnings, fmt.Sprintln(args...)) }
func (g grpcLog) Warningf(format string, args ...any) {
	g.line(grpcWarnings, fmt.Sprintf(format, args...))
}
func (g grpcLog) Error(args ...any)                 { g.error(fmt.Sprint(args...)) }
func (g grpcLog) Errorln(args ...any)               { g.error(fmt.Sprintln(args...)) }
func (g grpcLog) Errorf(format string, args ...any) { g.error(fmt.Sprintf(format, args...)) }
func (g grpcLog) Fatal(args ...any)                 { g.fatal(fmt.Sprint(args...)) }
func (g grpcLog) Fatalln(args ...any)               { g.fatal(fmt.Sprintln(args...)) }
func (g grpcLog) Fatalf(format string, args ...any) { g.fatal(fmt.Sprintf(format, args...)) }

// V tells gRPC whether to prepare lines of this verbosity.
func (g grpcLog) V(level int) bool { return g.logger().V(grpcInfos + level).Enabled() }

func (g grpcLog) line(verbosity int, text string) {
	g.logger().V(verbosity).Info("gRPC", "text", strings.TrimSpace(text))
}

func (g grpcLog) error(text string) {
	g.logger().Error(errors.New(strings.TrimSpace(text)), "gRPC reports an error")
}

// fatal ends the process, as gRPC requires.
func (g grpcLog) fatal(text string) {
	g.error(text)
	os.Exit(1)
}
