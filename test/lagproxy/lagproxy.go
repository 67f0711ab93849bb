// Package lagproxy is a reverse proxy in front of an API server that holds back the events of
// watches, like a busy API server: caches behind it are old, and nothing reports it.
//
// Other requests pass immediately, so that a client writes and reads the present state while its
// caches lag. It sends requests with its own credentials. Failed requests are in package
// faultproxy, silent connections in package silentproxy. A Proxy is safe for concurrent use; Close
// ends it. It is tested with an HTTP server.
package lagproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Proxy forwards requests to an API server.
type Proxy struct {
	address string
	server  *http.Server
	done    chan error

	mu      sync.Mutex // guards the fields below
	held    []string
	changed chan struct{} // closed when held changes
}

// Start listens on a free port of the loopback and forwards requests to the API server of a client
// configuration.
func Start(target *rest.Config) (*Proxy, error) {
	transport, err := rest.TransportFor(target)
	if err != nil {
		return nil, err
	}
	host, err := url.Parse(target.Host)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{address: listener.Addr().String(), done: make(chan error, 1), changed: make(chan struct{})}
	p.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(host) }, Transport: transport, FlushInterval: -1,
		ModifyResponse: p.gate,
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}}
	go func() { p.done <- p.server.Serve(listener) }()
	return p, nil
}

// Config returns the client configuration for clients of the proxy.
func (p *Proxy) Config() *rest.Config { return &rest.Config{Host: "http://" + p.address} }

// Hold holds back the events of resources, by plural name, in the watches that are open and in new
// ones. It replaces the resources of an earlier call.
func (p *Proxy) Hold(resources ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = resources
	close(p.changed)
	p.changed = make(chan struct{})
}

// Release delivers all events, also those that were held back.
func (p *Proxy) Release() { p.Hold() }

// Close ends the proxy and all its connections.
func (p *Proxy) Close() error {
	err := p.server.Close()
	if served := <-p.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// gate puts a gate in front of the events of a watch.
func (p *Proxy) gate(r *http.Response) error {
	if q := r.Request.URL.Query().Get("watch"); q == "true" || q == "1" {
		path := strings.Split(r.Request.URL.Path, "/")
		r.Body = &gated{ReadCloser: r.Body, proxy: p, resource: path[len(path)-1], ctx: r.Request.Context()}
	}
	return nil
}

// gated is the body of a watch of a collection.
type gated struct {
	io.ReadCloser
	proxy    *Proxy
	resource string
	ctx      context.Context // the request's
}

// Read returns bytes when they are not held back.
func (g *gated) Read(b []byte) (int, error) {
	n, err := g.ReadCloser.Read(b)
	if passErr := g.proxy.pass(g.ctx, g.resource); passErr != nil {
		return 0, passErr
	}
	return n, err
}

// pass waits until a resource is not held.
func (p *Proxy) pass(ctx context.Context, resource string) error {
	for {
		p.mu.Lock()
		held := slices.Contains(p.held, resource)
		changed := p.changed
		p.mu.Unlock()
		if !held {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
