package verifystream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// ListenOptions says where hooks can dial in.
type ListenOptions struct {
	Options
	// Listening is called once with the address.
	Listening func(address string)
	// Address is host:port; port 0 selects a free port.
	Address string
	// CertFile and KeyFile name PEM files; hooks dial in over TLS.
	CertFile, KeyFile string
	// AttachWait limits how long to wait for the hook to dial in; 0 means [DefaultAttachWait].
	AttachWait time.Duration
}

// DefaultAttachWait is longer than the usual backoff of a hook.
const DefaultAttachWait = time.Minute

// Listen plays the dialogues with a hook that dials in, and writes a line about each to out.
func Listen(ctx context.Context, o ListenOptions, out io.Writer) ([]Result, error) {
	certificate, err := credentials.NewServerTLSFromFile(o.CertFile, o.KeyFile)
	if err != nil {
		return nil, &OptionError{"certificate: " + err.Error()}
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", o.Address)
	if err != nil {
		return nil, err
	}
	if o.AttachWait == 0 {
		o.AttachWait = DefaultAttachWait
	}
	g := &gateway{attached: make(chan *attachment), wait: o.AttachWait}
	server := grpc.NewServer(grpc.Creds(certificate), grpc.MaxRecvMsgSize(maxPiece))
	streamv1.RegisterGatewayServiceServer(server, g)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if o.Listening != nil {
		o.Listening(listener.Addr().String())
	}
	results, err := run(ctx, o.Options, g, out)
	server.Stop()
	if stopped := <-served; !errors.Is(stopped, grpc.ErrServerStopped) { // the error of a stop before the server began
		err = errors.Join(err, stopped)
	}
	return results, err
}

var errNobody = errors.New("no hook has dialled in")

// attachment is a stream that a hook has opened.
type attachment struct {
	grpc.BidiStreamingServer[streamv1.HookMessage, streamv1.EngineMessage]
	ended chan struct{}
}

func (a *attachment) breakOff() { close(a.ended) }

// gateway is a gateway for one hook at a time.
type gateway struct {
	streamv1.UnimplementedGatewayServiceServer
	attached chan *attachment
	wait     time.Duration
}

func (g *gateway) dialsIn() bool { return true }

// Attach hands a stream over to the player, which ends it.
func (g *gateway) Attach(conn grpc.BidiStreamingServer[streamv1.HookMessage, streamv1.EngineMessage]) error {
	a := &attachment{conn, make(chan struct{})}
	select {
	case g.attached <- a:
	case <-conn.Context().Done():
		return conn.Context().Err()
	}
	select {
	case <-a.ended:
		return status.Error(codes.Unavailable, "the dialogue has ended, or breaks the stream")
	case <-conn.Context().Done():
		return conn.Context().Err()
	}
}

func (g *gateway) open(ctx context.Context) (link, error) {
	timer := time.NewTimer(g.wait)
	defer timer.Stop()
	for {
		select {
		case a := <-g.attached:
			if a.Context().Err() != nil {
				continue // it left while another dialogue was played
			}
			return a, nil
		case <-timer.C:
			return nil, fmt.Errorf("%w within %v", errNobody, g.wait)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
