package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// The reactions to an edit of a child, the values of a flag.
const (
	writeAgain = "write"
	askAgain   = "ask"
)

// known is the last answer about a parent. It is immutable.
type known struct {
	parent *body
	// data is the answer as the hook sent it; nil if it was only decoded.
	data   []byte
	wanted map[string]object // the children by name
}

// edit is a child that another client has changed.
type edit struct {
	last  *known
	child *body
}

// isEdit reports whether a child has other data than the last answer wants. The nil answer wants
// nothing.
func (k *known) isEdit(child *body) bool {
	if k == nil || k.wanted[child.Metadata.Name] == nil {
		return false
	}
	return !same(child.Data, k.wanted[child.Metadata.Name]["data"])
}

// remember stores an answer.
func (c *controller) remember(parent *body, data []byte, a *answer) *known {
	k := &known{parent: parent, data: data, wanted: map[string]object{}}
	for _, child := range a.Children {
		metadata, _ := child["metadata"].(object)
		name, _ := metadata["name"].(string)
		k.wanted[name] = child
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[parent.Metadata.UID] = k
	return k
}

// repair writes an edited child again. It asks the hook first, unless the flag is writeAgain. An
// answer that is the same as the last one is not decoded.
func (c *controller) repair(ctx context.Context, e edit) error {
	last := e.last
	if c.edits == askAgain {
		data, err := c.ask(ctx, last)
		if err != nil {
			return err
		}
		if !bytes.Equal(data, last.data) {
			var a answer
			if err := json.Unmarshal(data, &a); err != nil {
				return err
			}
			last = c.remember(last.parent, data, &a)
		}
	}
	name := e.child.Metadata.Name
	return c.write(ctx, last.parent, e.child, name, last.wanted[name])
}

// ask asks the hook about a parent and its present children, and returns the answer's bytes.
func (c *controller) ask(ctx context.Context, last *known) ([]byte, error) {
	response, err := c.api.send(ctx, http.MethodPost, c.hook, "application/json", c.question(last))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it was read to its end
	data := bytes.NewBuffer(make([]byte, 0, max(bytes.MinRead, int(response.ContentLength)+bytes.MinRead)))
	if _, err := io.Copy(data, response.Body); err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("hook: %s: %s", response.Status, data)
	}
	return data.Bytes(), nil
}

// question returns the request about a parent. The objects are those of the API server, byte by
// byte.
func (c *controller) question(last *known) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	children := c.children[last.parent.Metadata.UID]
	size := len(last.parent.raw) + 100
	for name, child := range children {
		size += len(name) + len(child.raw) + 4
	}
	out := append(make([]byte, 0, size), `{"finalizing":false,"parent":`...)
	out = append(append(out, last.parent.raw...), `,"children":{"ConfigMap.v1":{`...)
	separator := ""
	for name, child := range children {
		out = append(strconv.AppendQuote(append(out, separator...), name), ':')
		out = append(out, child.raw...)
		separator = ","
	}
	return append(out, "}}}"...)
}
