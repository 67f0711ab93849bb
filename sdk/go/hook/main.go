package hook

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Main runs a hook program. It reads flags and environment variables into [ServeOptions] and
// [Gateway], then serves the hooks until it receives SIGTERM or SIGINT. Running calls may finish
// first, within [Options].GracePeriod.
//
// Main prints "listening on ADDRESS". With --attach it connects to a gateway instead, and prints
// "attached to ADDRESS" whenever a session opens. It exits with status 1 after an error and with
// status 2 after a wrong flag. If your program has flags of its own, use [ServeOptions.AddFlags]
// with [Serve], or [Gateway.AddFlags] with [Attach].
func Main(hooks ...Hook) {
	o := ServeOptions{Listening: func(at net.Addr) { fmt.Printf("listening on %s\n", at) }}
	o.AddFlags(flag.CommandLine)
	a := AttachOptions{}
	a.Gateway.AddFlags(flag.CommandLine)
	flags{flag.CommandLine}.text(&a.Worker, "worker", "", "with --attach: the worker to serve, which controllers refer to")
	intercept := interceptFlags(flag.CommandLine)
	flag.Parse()
	a.Options = o.Options
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "unexpected argument %q; expected flags only\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	var err error
	if a.Gateway.Address == "" {
		err = Serve(ctx, o, hooks...)
	} else if a.Intercept, err = intercept(); err == nil {
		a.Attached = func() { fmt.Printf("attached to %s\n", a.Gateway.Address) }
		err = Attach(ctx, a, hooks...)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// interceptFlags adds the flags that describe an [Intercept]. Call the returned function after
// parsing; it returns nil if --intercept is not set.
func interceptFlags(fs *flag.FlagSet) func() (*Intercept, error) {
	i := &Intercept{}
	controller := ""
	f := flags{fs}
	f.text(&controller, "intercept", "",
		"with --attach: answer for parents of this controller, KIND/NAME, instead of its own hook")
	f.text(&i.Namespace, "namespace", "", "with --intercept: only parents in this namespace")
	f.text(&i.Name, "name", "", "with --intercept: only parents of this name")
	f.text(&i.LabelSelector, "labels", "", "with --intercept: only parents with these labels, as kubectl takes them")
	return func() (*Intercept, error) {
		if controller == "" {
			return nil, nil
		}
		var found bool
		i.ControllerKind, i.ControllerName, found = strings.Cut(controller, "/")
		if !found {
			return nil, fmt.Errorf("--intercept: got %q, expected KIND/NAME such as CompositeController/hello", controller)
		}
		return i, nil
	}
}
