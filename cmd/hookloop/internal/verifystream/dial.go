package verifystream

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// maxPiece limits a single gRPC message. It is above the largest valid one.
const maxPiece = 64 << 20

// DialOptions says where a hook listens, and how to trust it.
type DialOptions struct {
	Options
	// Address is host:port.
	Address string
	// CAFile names a PEM file with the authorities of the hook's certificate; empty means plain
	// text.
	CAFile string
	// ServerName is the name in the hook's certificate; empty means the host of the address.
	ServerName string
}

// Dial plays the dialogues with a hook that listens, and writes a line about each to out.
func Dial(ctx context.Context, o DialOptions, out io.Writer) ([]Result, error) {
	transport := insecure.NewCredentials()
	if o.CAFile != "" {
		var err error
		transport, err = credentials.NewClientTLSFromFile(o.CAFile, o.ServerName)
		if err != nil {
			return nil, &OptionError{"authorities: " + err.Error()}
		}
	}
	connection, err := grpc.NewClient(o.Address, grpc.WithTransportCredentials(transport),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxPiece)))
	if err != nil {
		return nil, err
	}
	defer connection.Close() //nolint:errcheck // all streams have ended
	if _, err := selected(o.Options); err != nil {
		return nil, err
	}
	wait := cmp.Or(o.Wait, DefaultWait)
	if !connects(ctx, connection, wait) {
		return nil, fmt.Errorf("hook %s: no connection within %s", o.Address, wait)
	}
	return run(ctx, o.Options, &dialer{streamv1.NewHookStreamServiceClient(connection), wait}, out)
}

// connects reports whether the hook accepts a connection in time.
func connects(ctx context.Context, connection *grpc.ClientConn, wait time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	connection.Connect()
	for state := connection.GetState(); state != connectivity.Ready; state = connection.GetState() {
		if !connection.WaitForStateChange(ctx, state) {
			return false
		}
	}
	return true
}

// dialer opens streams to a hook that listens.
type dialer struct {
	client streamv1.HookStreamServiceClient
	// wait is the longest wait for a connection.
	wait time.Duration
}

func (d *dialer) dialsIn() bool { return false }

func (d *dialer) open(ctx context.Context) (link, error) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(d.wait, cancel) // the stream outlives the wait
	connected, err := d.client.Connect(ctx, grpc.WaitForReady(true))
	if !timer.Stop() && err == nil {
		err = fmt.Errorf("no connection within %s", d.wait)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return &dialled{connected, cancel}, nil
}

// dialled is a stream that the kit has opened.
type dialled struct {
	grpc.BidiStreamingClient[streamv1.EngineMessage, streamv1.HookMessage]
	cancel context.CancelFunc
}

func (d *dialled) breakOff() { d.cancel() }
