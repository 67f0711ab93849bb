// Package faultproxy is a reverse proxy in front of an API server. It fails a share of the
// requests, like a busy server, a conflict or a lost response.
//
// It sends requests with its own credentials, so that a client needs none. Faults of TCP are in
// package silentproxy. A Proxy is safe for concurrent use; Close ends it. It is tested with an HTTP
// server.
package faultproxy

import (
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Fault is one way in which requests fail.
type Fault struct {
	// Share is the share of the requests that fail in this way: 0.1 is every tenth.
	Share float64
	// Code and Reason are those of the response, a Status of the API machinery.
	Code   int
	Reason metav1.StatusReason
	// Lost forwards the request to the server first, and drops the server's response: the client gets
	// Code instead. Lost skips watches, because they have no end.
	Lost bool
	// Matches narrows the requests; nil takes all.
	Matches func(*http.Request) bool
}

// Busy returns the faults of a busy API server: 10 % 429, 5 % 409, 5 % 500 and 2 % timeouts. The
// server has carried out half of the timed-out requests.
func Busy() []Fault {
	return []Fault{
		{Share: .10, Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests},
		{Share: .05, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict},
		{Share: .05, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError},
		{Share: .01, Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout},
		{Share: .01, Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout, Lost: true},
	}
}

// Count holds the number of requests, and the number of failures by code.
type Count struct {
	Requests int
	Failed   map[int]int
}

// Proxy forwards requests to an API server.
type Proxy struct {
	address string
	next    *httputil.ReverseProxy
	server  *http.Server
	done    chan error

	mu     sync.Mutex // guards the fields below
	faults []Fault
	random *rand.Rand
	count  Count
}

// Start listens on a free port of the loopback and forwards requests to the API server of a client
// configuration. Requests do not fail before Set.
func Start(target *rest.Config, seed uint64) (*Proxy, error) {
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
	p := &Proxy{
		address: listener.Addr().String(), random: rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // no secret
		count: Count{Failed: map[int]int{}}, done: make(chan error, 1),
		next: &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(host) }, Transport: transport, FlushInterval: -1,
			ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		},
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	go func() { p.done <- p.server.Serve(listener) }()
	return p, nil
}

// Config returns the client configuration for clients of the proxy.
func (p *Proxy) Config() *rest.Config { return &rest.Config{Host: "http://" + p.address} }

// Set replaces the faults. A request fails by at most one of them.
func (p *Proxy) Set(faults ...Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = faults
}

// Take returns the counts since the last call.
func (p *Proxy) Take() Count {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.count
	p.count = Count{Failed: map[int]int{}}
	return taken
}

// Close ends the proxy and all its connections.
func (p *Proxy) Close() error {
	err := p.server.Close()
	if served := <-p.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// ServeHTTP forwards or fails one request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, fails := p.draw(r)
	if !fails {
		p.next.ServeHTTP(w, r)
		return
	}
	if f.Lost {
		p.next.ServeHTTP(&discarded{header: http.Header{}}, r)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Code)
	_ = json.NewEncoder(w).Encode(metav1.Status{ // a closed connection is the client's choice
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Reason: f.Reason, Code: int32(f.Code), Message: "a fault of the proxy", //nolint:gosec // a status code
	})
}

// draw decides whether and how a request fails.
func (p *Proxy) draw(r *http.Request) (Fault, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count.Requests++
	at := p.random.Float64()
	for _, f := range p.faults {
		if f.Matches != nil && !f.Matches(r) || f.Lost && r.URL.Query().Has("watch") {
			continue
		}
		if at < f.Share {
			p.count.Failed[f.Code]++
			return f, true
		}
		at -= f.Share
	}
	return Fault{}, false
}

// discarded is a response without a client.
type discarded struct{ header http.Header }

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(b []byte) (int, error) { return io.Discard.Write(b) }
func (d *discarded) WriteHeader(int)             {}
