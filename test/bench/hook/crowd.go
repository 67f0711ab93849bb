package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/hookloop/hookloop/sdk/go/hook"
)

// crowd is the parent.
type crowd struct {
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		// Children is the number of ConfigMaps, Text their data.text, and Bytes the length of the rest of
		// their data.
		Children int    `json:"children"`
		Text     string `json:"text"`
		Bytes    int    `json:"bytes"`
		// Theme is the name of the related Secret; empty for none.
		Theme string `json:"theme"`
	} `json:"spec"`
}

// wanted is the answer about one crowd. It is shared and never changed.
type wanted struct {
	crowd    crowd
	status   json.RawMessage
	children []hook.Child
	// webhook is the same as a webhook's response.
	webhook []byte
}

// crowds keeps the last answer about each parent.
type crowds struct {
	mu      sync.Mutex // guards answers
	answers map[string]*wanted
}

// wanted returns the answer about a crowd.
func (c *crowds) wanted(of crowd) *wanted {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.answers[of.Metadata.Name]; known != nil && known.crowd == of {
		return known
	}
	if c.answers == nil {
		c.answers = map[string]*wanted{}
	}
	w := build(of)
	c.answers[of.Metadata.Name] = w
	return w
}

func build(of crowd) *wanted {
	w := &wanted{crowd: of, status: json.RawMessage(fmt.Sprintf(`{"children":%d}`, of.Spec.Children))}
	text := quote(of.Spec.Text)
	rest := quote(strings.Repeat("0123456789abcdef", of.Spec.Bytes/16+1)[:of.Spec.Bytes])
	var all bytes.Buffer
	fmt.Fprintf(&all, `{"status":%s,"children":[`, w.status)
	for i := range of.Spec.Children {
		if i > 0 {
			all.WriteByte(',')
		}
		begin := all.Len()
		fmt.Fprintf(
			&all,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%s,"labels":{"bench.example.com/crowd":%s}},`+
				`"data":{"text":%s,"rest":%s}}`,
			quote(fmt.Sprintf("%s-%d", of.Metadata.Name, i)),
			quote(of.Metadata.Name),
			text,
			rest,
		)
		child, err := hook.Encode(json.RawMessage(all.Bytes()[begin:]))
		if err != nil {
			panic(err) // the format above
		}
		w.children = append(w.children, hook.Child{Object: child})
	}
	all.WriteString(`]}`)
	w.webhook = all.Bytes()
	return w
}

// quote returns a string as JSON.
func quote(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err) // every string has a JSON form
	}
	return string(data)
}
