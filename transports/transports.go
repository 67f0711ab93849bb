// Package transports has Hookloop's own transports, which carry the engine's questions to hooks:
// webhook, grpc, inproc (Go functions of this process) and gateway (hooks that dial in). Use
// [Openers] to get all of them. The packages codec and transporttest help you to write and test
// another one.
//
// # Write a transport
//
// A transport carries a question to a hook and an answer back. It is one function, a [hook.Opener]:
//
//	func Open(config hook.Config) (*hook.Opened, error) {
//		var field struct{ Address string }
//		if err := json.Unmarshal(config.Field, &field); err != nil {
//			return nil, err
//		}
//		return &hook.Opened{Hook: newClient(config, field.Address), Address: "tcp:" + field.Address}, nil
//	}
//
// Package codec converts questions and answers to messages of the gRPC contract and back, and
// package transporttest has the suite that every transport should pass. Register the transport under
// a name with a program of your own:
//
//	config := server.DefaultConfig()
//	config.Transports = hook.Openers{"tcp": tcp.Open}
//	err := server.Run(ctx, config)
//
// A controller refers to it by this name:
//
//	hooks:
//	  sync:
//	    transport: {name: tcp, config: {address: "10.0.0.7:4000"}}
package transports

import (
	"maps"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/transports/fallback"
	"github.com/hookloop/hookloop/transports/gateway"
	"github.com/hookloop/hookloop/transports/grpc"
	"github.com/hookloop/hookloop/transports/inproc"
	"github.com/hookloop/hookloop/transports/internal/endpoint"
	"github.com/hookloop/hookloop/transports/internal/stream"
	"github.com/hookloop/hookloop/transports/webhook"
	"github.com/prometheus/client_golang/prometheus"
)

// SecretPolicy restricts the addresses to which the values of Secrets may be sent.
type SecretPolicy = endpoint.Policy

// Sockets are the folders in which hooks may listen on unix sockets. If there are none, unix sockets
// are not allowed.
type Sockets = endpoint.Sockets

// StreamMetrics count what happens on the streams to gRPC hooks.
type StreamMetrics = stream.Metrics

// NewStreamMetrics registers the metrics. It panics if they are registered already.
func NewStreamMetrics(registry prometheus.Registerer) *StreamMetrics {
	return stream.NewMetrics(registry)
}

// Config is what the transports of one process share. The zero value works: it has no gateway, no Go
// functions, no metrics and no memory limit.
type Config struct {
	// Version is the version of the program. gRPC hooks are told it.
	Version string
	// Memory is the memory budget of the process; nil for no limit.
	Memory *budget.Budget
	// Secrets and Sockets restrict what hooks may use.
	Secrets SecretPolicy
	Sockets Sockets
	// Streams and Fallbacks count what happens; nil counts nothing.
	Streams   *StreamMetrics
	Fallbacks *fallback.Metrics
	// Functions are the hooks that are Go functions of this process; nil for none.
	Functions *inproc.Transport
	// Gateway is where hooks dial in; nil without one.
	Gateway *gateway.Server
	// More are the transports that the program adds, by name.
	More hook.Openers
	// CountCache reports the number of entries of a cache, by its name; nil reports none.
	CountCache func(cache string, entries func() int)
}

// Openers returns all transports of the process by their names, with every pair of a transport and
// its fallback (see [hook.Composed]). A transport that the program adds is one more entry: the
// engine treats all entries in the same way.
func Openers(c Config) hook.Openers {
	overHTTP := &webhook.Transport{Memory: c.Memory, Secrets: c.Secrets, Sockets: c.Sockets}
	overGRPC := &grpc.Transport{
		Build:   c.Version,
		Metrics: c.Streams,
		Memory:  c.Memory,
		Secrets: c.Secrets,
		Sockets: c.Sockets,
	}
	if c.CountCache != nil {
		c.CountCache("stream-arrivals", overGRPC.CachedArrivals)
	}
	if c.Gateway != nil {
		overGRPC.Worker = c.Gateway.Open
	}
	functions := c.Functions
	if functions == nil {
		functions = &inproc.Transport{}
	}
	all := hook.Openers{
		"webhook": overHTTP.Open,
		"grpc":    overGRPC.Open,
		"inproc":  functions.Open,
	}
	maps.Copy(all, c.More)
	// A webhook may be the fallback of any transport but a function of this process, which is
	// always there.
	last := fallback.Side{Name: "webhook", Open: overHTTP.Open}
	pairs := hook.Openers{}
	for name, open := range all {
		if name == "webhook" || name == "inproc" {
			continue
		}
		first := fallback.Side{Name: name, Open: open}
		if _, added := c.More[name]; added {
			first.Field = "transport.config"
		}
		both := &fallback.Transport{Preferred: first, Fallback: last, Metrics: c.Fallbacks}
		pairs[hook.Composed(first.Name, last.Name)] = both.Open
	}
	maps.Copy(all, pairs)
	if c.Gateway == nil {
		return all
	}
	return c.Gateway.Openers(all)
}
