// Package wraptest tests what wraps a hook: a wrapper has to pass on every field of [hook.Opened],
// also one that is added later.
//
//	wrapped := wrap(wraptest.Full())
//	if missing := wraptest.Missing(wrapped); len(missing) > 0 { … }
package wraptest

import (
	"context"
	"reflect"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"k8s.io/apimachinery/pkg/types"
)

// Full returns a hook that sets every field of [hook.Opened]. It answers each question with an empty
// answer.
func Full() *hook.Opened {
	return &hook.Opened{
		Hook: hook.Func(func(context.Context, *hook.Question) (*hook.Answer, error) {
			return &hook.Answer{}, nil
		}),
		Address: "http://hello/sync",
		Named:   "shop",
		Timeout: time.Second,
		Forget:  func(types.UID, string) {},
		Close:   func() error { return nil },
		Probe:   func(context.Context) error { return nil },
	}
}

// Missing returns the names of the fields that are not set.
func Missing(opened *hook.Opened) []string {
	var missing []string
	v := reflect.ValueOf(*opened)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			missing = append(missing, v.Type().Field(i).Name)
		}
	}
	return missing
}
