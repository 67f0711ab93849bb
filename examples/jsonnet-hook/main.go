// Command jsonnet-hook serves the functions of a Jsonnet file as webhooks: sync, finalize,
// customize.
//
// jsonnet-hook --listen 127.0.0.1:8080 service-per-pod answers POST /sync with the result of the
// function sync of service-per-pod/hook.jsonnet. An error of the file becomes status 500 with its
// text. It is a separate module, so that Hookloop does not depend on Jsonnet.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/go-jsonnet"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "the address to listen on")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: jsonnet-hook [--listen host:port] <folder with hook.jsonnet>")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *listen, filepath.Join(flag.Arg(0), "hook.jsonnet")); err != nil {
		fmt.Fprintln(os.Stderr, "jsonnet-hook:", err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to undo
	}
}

func serve(ctx context.Context, address, file string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	server := &http.Server{Handler: hooks(file), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Shutdown(context.Background()) })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// hooks serves the results of the file's functions.
func hooks(file string) http.Handler {
	mux := http.NewServeMux()
	for _, name := range []string{"sync", "finalize", "customize"} {
		mux.HandleFunc("POST /"+name, func(w http.ResponseWriter, r *http.Request) {
			answer, err := call(file, name, r.Body)
			w.Header().Set("Content-Type", "application/json")
			if err != nil { // the engine shows the text on the parent
				w.WriteHeader(http.StatusInternalServerError)
				answer, _ = json.Marshal(map[string]string{"error": err.Error()})
			}
			_, _ = w.Write(answer) // a closed connection is the caller's choice
		})
	}
	return mux
}

// call evaluates one function of the file. Each call has its own virtual machine, because they are
// not safe for concurrent use.
func call(file, function string, request io.Reader) ([]byte, error) {
	body, err := io.ReadAll(request)
	if err != nil {
		return nil, err
	}
	path, err := json.Marshal(file)
	if err != nil {
		return nil, err
	}
	vm := jsonnet.MakeVM()
	vm.TLACode("request", string(body))
	answer, err := vm.EvaluateAnonymousSnippet(function,
		fmt.Sprintf("function(request) (import %s).%s(request)", path, function))
	return []byte(answer), err
}
