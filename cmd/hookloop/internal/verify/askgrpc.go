package verify

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/internal/protocol/methods"
	"github.com/hookloop/hookloop/transports/codec"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// prefixBytes is the size of the prefix of a gRPC message: a flag, and the length.
const prefixBytes = 5

// overtime is how long to observe a call after its deadline.
const overtime = 5 * time.Second

// grpcClient makes unary gRPC calls over plain HTTP/2 (doc/PROTOCOL-HTTP2.md of gRPC). gRPC's own
// client would end a call at the deadline, so we could not see whether the hook ends it.
type grpcClient struct {
	base          string
	named         string // the hook's name at its server; empty for the only one
	timeout       time.Duration
	authorization string
	http          *http.Transport
}

func newGRPCClient(host string, timeout time.Duration, m *material) *grpcClient {
	c := &grpcClient{base: "https://" + host, timeout: timeout, authorization: m.authorization()}
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	if m.plain {
		c.base = "http://" + host
		protocols = &http.Protocols{}
		protocols.SetUnencryptedHTTP2(true)
	}
	c.http = &http.Transport{
		TLSClientConfig: m.tls.Clone(), Protocols: protocols, DisableCompression: true,
		DialContext: (&net.Dialer{Timeout: timeout}).DialContext, TLSHandshakeTimeout: timeout,
	}
	return c
}

// newSocketClient returns a client of the hook at a unix socket, in plain text.
func newSocketClient(path string, timeout time.Duration) *grpcClient {
	c := newGRPCClient("localhost", timeout, &material{plain: true})
	c.http.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: timeout}).DialContext(ctx, "unix", path)
	}
	return c
}

func (c *grpcClient) close() { c.http.CloseIdleConnections() }

// ask makes the unary call of a question.
func (c *grpcClient) ask(ctx context.Context, q *hook.Question) *reply {
	return c.askWithin(ctx, q, c.timeout)
}

// askWithin makes the call with a deadline, and keeps waiting for its end after that.
func (c *grpcClient) askWithin(ctx context.Context, q *hook.Question, timeout time.Duration) *reply {
	call := codec.New(q, codec.Meta("verify", c.named))
	request, err := proto.Marshal(call.Request)
	if err != nil {
		return &reply{unreachable: err.Error()}
	}
	r, data := c.call(ctx, codec.Method(q.Kind, q.Op), request, timeout)
	if data == nil {
		return r
	}
	if err := proto.Unmarshal(data, call.Response); err != nil {
		id := ruleMalformed
		if strings.Contains(err.Error(), "UTF-8") {
			id = ruleNotUTF8
		}
		r.fault(id, "%v", err)
		return r
	}
	c.read(r, q, call.Response)
	return r
}

// call makes a unary call. The data is nil unless a message came with the status OK.
func (c *grpcClient) call(
	ctx context.Context, method string, message []byte, timeout time.Duration,
) (*reply, []byte) {
	ctx, cancel := context.WithTimeout(ctx, timeout+overtime)
	defer cancel()
	r := &reply{}
	begun := time.Now()
	defer func() { r.took = time.Since(begun) }()
	var connected connection
	response, data, err := c.roundTrip(connected.trace(ctx), method, message, timeout)
	switch {
	case err != nil && !connected.got.Load() && time.Since(begun) >= c.timeout:
		r.unreachable = fmt.Sprintf("%s %s", noConnection, c.timeout)
		return r, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		r.timedOut = true
		r.endless = true
		return r, nil
	case err != nil && time.Since(begun) >= timeout: // gRPC's servers may reset a call at its deadline
		r.timedOut = true
		return r, nil
	case err != nil && strings.Contains(err.Error(), "stream error"):
		r.failure = &failure{message: err.Error(), vague: "the call ended without a status"}
		return r, nil
	case err != nil:
		r.connectionError(ctx, err)
		return r, nil
	case response.StatusCode != http.StatusOK:
		r.unreachable = fmt.Sprintf("HTTP status %d, which no gRPC server sends", response.StatusCode)
		return r, nil
	case !strings.HasPrefix(response.Header.Get("Content-Type"), "application/grpc"):
		r.unreachable = fmt.Sprintf("Content-Type %q, which no gRPC server sends", response.Header.Get("Content-Type"))
		return r, nil
	}
	r.failure = grpcFailure(response)
	if r.failure != nil {
		return r, nil
	}
	return r, r.unframe(response.Header, data)
}

func (c *grpcClient) roundTrip(
	ctx context.Context, method string, message []byte, timeout time.Duration,
) (*http.Response, []byte, error) {
	frame := make([]byte, prefixBytes, prefixBytes+len(message))
	binary.BigEndian.PutUint32(frame[1:], uint32(len(message))) //nolint:gosec // a question is smaller
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+method,
		bytes.NewReader(append(frame, message...)))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("Te", "trailers")
	request.Header.Set("Grpc-Timeout", strconv.FormatInt(max(1, timeout.Milliseconds()), 10)+"m")
	if c.authorization != "" {
		request.Header.Set("Authorization", c.authorization)
	}
	response, err := c.http.RoundTrip(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close() //nolint:errcheck // the answer has been read
	data, err := io.ReadAll(io.LimitReader(response.Body, codec.MaxMessageBytes+prefixBytes+1))
	return response, data, err
}

// grpcFailure returns the status of a call, or nil for OK. The status is in the trailer, or in the
// header of a response without a message.
func grpcFailure(response *http.Response) *failure {
	fields := response.Trailer
	if fields.Get("Grpc-Status") == "" {
		fields = response.Header
	}
	text := fields.Get("Grpc-Status")
	code, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return &failure{
			message: fmt.Sprintf("grpc-status is %q", text),
			vague:   "the call ended without a status, or the answer is larger than the limit",
		}
	}
	if codes.Code(code) == codes.OK {
		return nil
	}
	message, err := url.PathUnescape(fields.Get("Grpc-Message"))
	if err != nil {
		message = fields.Get("Grpc-Message")
	}
	f := &failure{
		code: codes.Code(code).String(), message: message, missing: codes.Code(code) == codes.Unimplemented,
	}
	switch {
	case codes.Code(code) == codes.Unknown:
		f.vague = "UNKNOWN is the status of an exception that nothing has turned into one"
	case codes.Code(code) > codes.Unauthenticated:
		f.vague = "gRPC has no such code"
	default:
		f.vague = checkDetails(fields.Get("Grpc-Status-Details-Bin"), int32(code))
	}
	return f
}

// checkDetails checks the google.rpc.Status that accompanies a status.
func checkDetails(header string, code int32) string {
	if header == "" {
		return ""
	}
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(header, "="))
	if err != nil {
		return "grpc-status-details-bin is not base64"
	}
	s := &statuspb.Status{}
	if err := proto.Unmarshal(data, s); err != nil {
		return "grpc-status-details-bin is no google.rpc.Status"
	}
	if s.GetCode() != code {
		return fmt.Sprintf("grpc-status-details-bin has the code %s",
			codes.Code(s.GetCode())) //nolint:gosec // for a message only
	}
	return ""
}

// unframe returns the one message of a response, or nil and a fault.
func (r *reply) unframe(header http.Header, data []byte) []byte {
	switch {
	case len(data) > codec.MaxMessageBytes+prefixBytes:
		r.fault(ruleLimit, "more than %d bytes", codec.MaxMessageBytes)
	case len(data) < prefixBytes:
		r.fault(ruleMalformed, "the status OK without a message")
	case data[0] != 0:
		r.fault(ruleEncoding, "the message is compressed (grpc-encoding %q); the call accepts identity only",
			header.Get("Grpc-Encoding"))
	case len(data)-prefixBytes != int(binary.BigEndian.Uint32(data[1:])):
		r.fault(ruleMalformed, "a message of %d bytes, announced as %d",
			len(data)-prefixBytes, binary.BigEndian.Uint32(data[1:]))
	default:
		return data[prefixBytes:]
	}
	return nil
}

// read checks the JSON of a response and decodes it as the engine does.
func (c *grpcClient) read(r *reply, q *hook.Question, response proto.Message) {
	decodable := true
	if with, ok := response.(interface{ GetStatus() []byte }); ok && len(with.GetStatus()) > 0 {
		decodable = r.checkJSON("status", with.GetStatus())
	}
	for i, d := range desiredObjects(response) {
		where := strings.TrimSpace(fmt.Sprintf("%s[%d] %s", q.Kind.Descriptor().ChildrenField, i, childName(d.GetBody())))
		if e := d.GetEncoding(); e != hookv1.Encoding_ENCODING_UNSPECIFIED && e != hookv1.Encoding_ENCODING_JSON {
			r.fault(ruleEncoding, "%s: encoding is %s", where, e)
			decodable = false
			continue
		}
		decodable = r.checkJSON(where, d.GetBody()) && decodable
	}
	if !decodable {
		return
	}
	answer, err := codec.Answer(response)
	if err != nil {
		r.fault(ruleRejected, "%v", err)
		return
	}
	r.answer = answer
}

// desiredObjects returns the children, attachments or outputs of a response.
func desiredObjects(response proto.Message) []*hookv1.DesiredObject {
	method := methods.Of(response)
	if method == nil {
		return nil
	}
	objects, _ := method.Desired(response)
	if objects == nil {
		return nil
	}
	return *objects
}
