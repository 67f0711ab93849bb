package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// serveWebhook serves until ctx is cancelled. If compressed is set, it accepts compressed requests.
func serveWebhook(ctx context.Context, listen string, c *crowds, compressed bool) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", c)
	mux.HandleFunc("/map", serveMap)
	mux.HandleFunc("/customize", serveCustomize)
	handler := http.Handler(mux)
	if compressed {
		handler = decompressing(mux)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	listening(listener.Addr())
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	if err := server.Close(); err != nil {
		return err
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// decompressing declares that requests may be compressed by gzip, and decompresses them.
func decompressing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Accept-Encoding", "gzip")
		if r.Header.Get("Content-Encoding") == "gzip" {
			plain, err := gzip.NewReader(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			r.Body = io.NopCloser(plain)
		}
		next.ServeHTTP(w, r)
	})
}

// ServeHTTP answers one question of the webhook.
func (c *crowds) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parent, err := parentOf(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil { // otherwise the connection is not reused
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(c.wanted(parent).webhook) //nolint:errcheck // a caller that has gone away asks again
}

// parentOf reads a request up to its parent, and leaves the children after it unread.
func parentOf(body io.Reader) (crowd, error) {
	decoder := json.NewDecoder(body)
	if _, err := decoder.Token(); err != nil {
		return crowd{}, fmt.Errorf("request: %w", err)
	}
	for decoder.More() {
		field, err := decoder.Token()
		if err != nil {
			return crowd{}, fmt.Errorf("request: %w", err)
		}
		if field == "parent" {
			var parent crowd
			if err := decoder.Decode(&parent); err != nil {
				return crowd{}, fmt.Errorf("request: parent: %w", err)
			}
			return parent, nil
		}
		var other json.RawMessage
		if err := decoder.Decode(&other); err != nil {
			return crowd{}, fmt.Errorf("request: %v: %w", field, err)
		}
	}
	return crowd{}, errors.New("request: it has no parent")
}
