package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
)

type object = map[string]any

// client makes requests to the API server, and to the webhook.
type client struct {
	http  *http.Client
	host  string
	agent string
}

func newClient(config *rest.Config) (*client, error) {
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &client{http: c, host: strings.TrimSuffix(config.Host, "/"), agent: config.UserAgent}, nil
}

// do sends a request with a body, which may be nil, and decodes the answer into out unless out is
// nil. An answer of 300 or above is an error.
func (c *client) do(ctx context.Context, method, url, contentType string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	response, err := c.send(ctx, method, url, contentType, body)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it was read to its end
	data, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case response.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s: %s", method, url, response.Status, data)
	case out == nil:
		return nil
	}
	return json.Unmarshal(data, out)
}

func (c *client) send(ctx context.Context, method, url, contentType string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", c.agent)
	request.Header.Set("Content-Type", contentType)
	return c.http.Do(request)
}

// event is one event of a watch.
type event struct {
	Type   string
	Object *body
}

// watch hands each event of a resource to take until ctx is done. It begins with all objects. The
// API server ends watches as it pleases; the next one continues after the last event.
func (c *client) watch(ctx context.Context, path string, take func(event)) error {
	version := ""
	for {
		stream, err := c.begin(ctx, c.host+path+"?watch=1&resourceVersion="+version)
		if err != nil {
			return fmt.Errorf("watch %s: %w", path, err)
		}
		err = events(stream, func(e event) {
			version = e.Object.Metadata.ResourceVersion
			take(e)
		})
		if closed := stream.Close(); closed != nil || err != nil {
			return fmt.Errorf("watch %s: %w", path, errors.Join(err, closed))
		}
	}
}

// begin begins a watch. A resource that is not served yet is asked for again.
func (c *client) begin(ctx context.Context, url string) (io.ReadCloser, error) {
	for {
		response, err := c.send(ctx, http.MethodGet, url, "application/json", nil)
		if err != nil {
			return nil, err
		}
		if response.StatusCode == http.StatusOK {
			return response.Body, nil
		}
		if err := response.Body.Close(); err != nil {
			return nil, err
		}
		// 429: the API server makes the storage of a resource that has just been declared
		if response.StatusCode != http.StatusNotFound && response.StatusCode != http.StatusTooManyRequests {
			return nil, errors.New(response.Status)
		}
		if err := again(ctx); err != nil {
			return nil, err
		}
	}
}

// events hands each event of a stream to take until the stream ends.
func events(stream io.Reader, take func(event)) error {
	decoder := json.NewDecoder(stream)
	for {
		var e struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if e.Type == "ERROR" {
			return errors.New(string(e.Object))
		}
		o := &body{raw: e.Object}
		if err := json.Unmarshal(e.Object, o); err != nil {
			return err
		}
		take(event{e.Type, o})
	}
}
