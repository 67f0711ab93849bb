package exec

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/transporttest"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.uber.org/goleak"
)

// TestMain runs a program instead of the tests if the test binary is started under the name of one:
// the tests make links to it in their folder of programs.
func TestMain(m *testing.M) {
	name, argument, _ := strings.Cut(filepath.Base(os.Args[0]), "@")
	if program := programs[name]; program != nil {
		program(argument)
		return
	}
	goleak.VerifyTestMain(m)
}

// folder returns a transport with an empty folder of programs.
func folder(t *testing.T) *Transport {
	t.Helper()
	return &Transport{Folder: t.TempDir(), Log: funcr.New(func(string, string) {}, funcr.Options{})}
}

// link makes a program of the folder: name@argument.
func link(t *testing.T, transport *Transport, program string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(transport.Folder, program)); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
}

func field(t *testing.T, config Config) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestPassesTheSuiteOfAllTransports(t *testing.T) {
	transport := folder(t)
	for _, processes := range []int{1, 8} {
		t.Run(fmt.Sprintf("processes %d", processes), func(t *testing.T) {
			transporttest.Run(t, transporttest.Harness{
				Open: transport.Open,
				Serve: func(t *testing.T, timeout string, behave transporttest.Behavior) json.RawMessage {
					program := "relay@" + serve(t, behave)
					link(t, transport, program)
					return field(t, Config{Program: program, Timeout: timeout, Processes: processes})
				},
				Nowhere: func(t *testing.T) json.RawMessage {
					return field(t, Config{Program: "missing", Processes: processes})
				},
			})
		})
	}
}

// relay is a program that carries its standard input and output over a connection to the test.
func relay(address string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() {
		_, _ = io.Copy(conn, os.Stdin)
		_ = conn.Close()
	}()
	_, _ = io.Copy(os.Stdout, conn)
}

// serve answers the questions of relays until the test ends, and returns its address.
func serve(t *testing.T, behave transporttest.Behavior) string {
	t.Helper()
	listener := transporttest.Listen(t)
	done := make(chan struct{})
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go converse(t, conn, behave)
		}
	}()
	return listener.Addr().String()
}

// converse answers the lines of one program.
func converse(t *testing.T, conn net.Conn, behave transporttest.Behavior) {
	defer conn.Close() //nolint:errcheck // the program may have ended already
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	questions := make(chan []byte)
	go func() {
		defer cancel()
		reader := bufio.NewReader(conn)
		for {
			line, err := reader.ReadBytes('\n')
			if err != nil {
				return
			}
			select {
			case questions <- line:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case line := <-questions:
			if _, err := conn.Write(answerLine(ctx, t, line, behave)); err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// answerLine returns the line that the behavior prints for a question.
func answerLine(ctx context.Context, t *testing.T, line []byte, behave transporttest.Behavior) []byte {
	var question Question
	if err := json.Unmarshal(line, &question); err != nil {
		t.Errorf("the question is not as expected: %v: %s", err, line)
		return nil
	}
	got := received(t, &question)
	traced := otel.GetTextMapPropagator().Extract(ctx, propagation.MapCarrier(question.Trace))
	got.TraceID = transporttest.TraceID(traced)
	reply := behave(traced, got)
	answer := map[string]any{"id": question.ID}
	switch reply.Fault {
	case "":
		answer["response"] = response(got, reply.Answer)
	case transporttest.Fail:
		answer["error"] = Failure{Message: transporttest.FailText + "\n" + strings.Repeat("and more ", 10000)}
	case transporttest.Throttle:
		answer["error"] = Failure{Kind: "throttled", RetryAfterSeconds: transporttest.RetryAfter.Seconds()}
	case transporttest.Reject:
		answer["error"] = Failure{Kind: "rejected", Reason: transporttest.RejectReason}
	case transporttest.Garbage:
		return []byte("<html>\n")
	case transporttest.Huge:
		answer["response"] = map[string]any{"status": strings.Repeat("x", transporttest.HugeBytes)}
	case transporttest.Hang:
		<-ctx.Done()
	}
	text, err := json.Marshal(answer)
	if err != nil {
		t.Error(err)
	}
	return append(text, '\n')
}

// received reads a question as the suite wants it.
func received(t *testing.T, question *Question) transporttest.Received {
	var request struct {
		Parent, Object                          json.RawMessage
		Children, Attachments, Outputs, Related map[string]map[string]json.RawMessage
		MapKey                                  string
		Input                                   json.RawMessage
	}
	if err := json.Unmarshal(question.Request, &request); err != nil {
		t.Errorf("the request is not as expected: %v: %s", err, question.Request)
	}
	got := transporttest.Received{
		Kind:    question.Kind,
		Op:      question.Operation,
		Parent:  request.Parent,
		MapKey:  request.MapKey,
		Input:   request.Input,
		Related: texts(request.Related),
	}
	if request.Object != nil {
		got.Parent = request.Object
	}
	for _, children := range []map[string]map[string]json.RawMessage{
		request.Children, request.Attachments, request.Outputs,
	} {
		if children != nil {
			got.Children = texts(children)
		}
	}
	if got.Children == nil {
		got.Children = map[string]map[string]string{}
	}
	return got
}

func texts(groups map[string]map[string]json.RawMessage) map[string]map[string]string {
	out := map[string]map[string]string{}
	for kind, group := range groups {
		out[kind] = map[string]string{}
		for name, object := range group {
			out[kind][name] = string(object)
		}
	}
	return out
}

// response returns an answer as a webhook would give it.
func response(got transporttest.Received, a *hook.Answer) map[string]any {
	if got.Op == hook.Customize {
		return map[string]any{"relatedResources": a.Related}
	}
	out := map[string]any{
		"resyncAfterSeconds":                a.ResyncAfter.Seconds(),
		"finalized":                         a.Finalized,
		got.Kind.Descriptor().ChildrenField: a.Children,
	}
	if got.Kind != hook.Mapping {
		out["status"] = a.Status
	}
	if got.Kind == hook.Decorator {
		out["labels"] = a.Labels
		out["annotations"] = a.Annotations
	}
	return out
}
