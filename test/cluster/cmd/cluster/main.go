// Command cluster runs a control plane in the foreground, for experiments. It prints the kubeconfig
// and stops at Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/hookloop/hookloop/test/cluster"
)

func main() {
	dir := flag.String("dir", "", "folder for the data and the kubeconfig (default: a temporary one, removed at the end)")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "unexpected argument %q: there are flags only\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(*dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dir string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := cluster.New(ctx, cluster.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	bin, err := c.InstallKubectl()
	if err != nil {
		return err
	}
	fmt.Printf(
		"export KUBECONFIG=%s\nexport PATH=%s:$PATH\n\n"+
			"The control plane is ready. There is no kubelet: Pods stay Pending. Ctrl-C stops it.\n",
		c.Kubeconfig(),
		bin,
	)
	<-ctx.Done()
	return nil
}
