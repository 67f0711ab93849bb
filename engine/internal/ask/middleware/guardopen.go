package middleware

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/panics"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// openTimeout is how long an opener, or Opened.Close, may take. An opener opens no connection, so
// that one that takes longer waits for something that it should wait for in Ask.
const openTimeout = 30 * time.Second

// opening is what an opener returned.
type opening struct {
	opened *hook.Opened
	err    error
}

// guardOpener calls an opener. It returns an error if the opener panics, does not return, or does
// not return exactly one of a hook and an error. A hook that it does not return is closed.
func guardOpener(open hook.Opener, config hook.Config) (*hook.Opened, error) {
	returned := make(chan opening, 1)
	go func() {
		r := opening{err: errors.New("the transport ended the goroutine of its caller, expected it to return")}
		defer func() { returned <- r }()
		r = callOpener(open, config)
	}()
	timer := time.NewTimer(openTimeout)
	defer timer.Stop()
	select {
	case r := <-returned:
		return checkOpening(r)
	case <-timer.C:
	}
	go func() { // ends with the opener
		if r := <-returned; r.opened != nil {
			discard(r.opened)
		}
	}()
	return nil, fmt.Errorf("the transport did not open the hook within %s, expected it to open no connection", openTimeout)
}

func callOpener(open hook.Opener, config hook.Config) (r opening) {
	defer func() {
		var panicked *panics.Error
		if errors.As(r.err, &panicked) {
			r = opening{err: errors.New(panicked.Error())}
		}
	}()
	defer panics.Recover(context.Background(), &r.err, "panic in a transport that opens a hook",
		"controller", config.ControllerKind+" "+config.ControllerName, "operation", config.Op)
	r.opened, r.err = open(config)
	return r
}

func checkOpening(r opening) (*hook.Opened, error) {
	switch {
	case r.opened != nil && r.err != nil:
		discard(r.opened)
		return nil, r.err
	case r.err != nil:
		return nil, r.err
	case r.opened == nil:
		return nil, errors.New("the transport returned neither a hook nor an error, expected one of them")
	case r.opened.Hook == nil:
		discard(r.opened)
		return nil, errors.New("the transport returned a hook without a function, expected Opened.Hook to be set")
	}
	return r.opened, nil
}

// discard closes a hook that is not used.
func discard(opened *hook.Opened) {
	if err := guardClose(opened.Close, opened.Address)(); err != nil {
		klog.Background().Error(err, "a hook that was not opened is not closed", "address", opened.Address)
	}
}

// guardClose returns a function that calls Opened.Close, which may be nil. It returns an error if
// Close panics or does not return.
func guardClose(closeHook func() error, transport string) func() error {
	if closeHook == nil {
		return func() error { return nil }
	}
	return func() error {
		closed := make(chan error, 1)
		go func() {
			err := errors.New("the transport ended the goroutine of its caller, expected it to return")
			defer func() { closed <- err }()
			err = func() (err error) {
				defer panics.Recover(context.Background(), &err, "panic in a transport that closes a hook",
					"transport", transport)
				return closeHook()
			}()
		}()
		timer := time.NewTimer(openTimeout)
		defer timer.Stop()
		select {
		case err := <-closed:
			return err
		case <-timer.C:
			return fmt.Errorf("the transport %s did not close the hook within %s", transport, openTimeout)
		}
	}
}

// guardForget returns a function that calls Opened.Forget, and nil if there is none. A panic is
// logged.
func guardForget(forget func(types.UID, string), transport string) func(types.UID, string) {
	if forget == nil {
		return nil
	}
	return func(parent types.UID, part string) {
		defer panics.Recover(context.Background(), nil, "panic in a transport that forgets a parent",
			"transport", transport)
		forget(parent, part)
	}
}

// guardProbe returns a function that calls Opened.Probe, and nil if there is none. A panic is an
// error.
func guardProbe(probe func(context.Context) error, transport string) func(context.Context) error {
	if probe == nil {
		return nil
	}
	return func(ctx context.Context) (err error) {
		defer panics.Recover(ctx, &err, "panic in a transport that probes a hook", "transport", transport)
		return probe(ctx)
	}
}
