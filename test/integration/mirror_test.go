package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/test/kit"
)

// asHook is an environment variable that turns the test program into a hook. Its value is a part of
// the status of every parent.
const asHook = "HOOKLOOP_TEST_MIRROR"

// mirrorMain is the mirror on the SDK.
func mirrorMain() {
	answer := func(_ context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
		parent, err := hook.Parent[mirrored](req)
		if err != nil {
			return nil, err
		}
		if parent.Spec.Refuse != "" {
			return nil, hook.Reject("TooLate", "%s", parent.Spec.Refuse)
		}
		said := parent.Spec.Answer
		if req.Finalizing {
			said = parent.Spec.Finally
		}
		resp := &hook.SyncResponse{Finalized: said.Finalized, Status: map[string]string{"by": os.Getenv(asHook)}}
		if said.Status != nil {
			resp.Status = said.Status
		}
		for _, c := range said.Children {
			resp.Children = append(resp.Children, hook.Child{Object: c})
		}
		return resp, nil
	}
	hook.Main(hook.Composite{Sync: answer, Finalize: answer})
}

// mirrorHook is a mirror in a process of its own.
type mirrorHook struct {
	*proc.Process
	address string
}

// mirrorProcess starts a mirror until the test ends. An empty address means a free port.
func mirrorProcess(k *kit.Kit, address string) mirrorHook {
	k.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	p := mirrorWith(k, "mirror", "--listen", address)
	return mirrorHook{p, listening(k, p)}
}

// mirrorWith starts a mirror with flags, until the test ends. The status of its parents has by as
// its name.
func mirrorWith(k *kit.Kit, by string, flags ...string) *proc.Process {
	k.Helper()
	return k.Process(proc.Spec{Name: by, Path: os.Args[0], Args: flags, Env: []string{asHook + "=" + by}})
}

// listening returns the address that a hook prints.
func listening(k *kit.Kit, p *proc.Process) string {
	k.Helper()
	var address string
	err := p.Await(k.Context(), func(context.Context) error {
		_, after, found := strings.Cut(p.Output(), "listening on ")
		if !found || !strings.Contains(after, "\n") {
			return errors.New("it does not listen yet")
		}
		_, err := fmt.Sscan(after, &address)
		return err
	})
	if err != nil {
		k.Fatal(err)
	}
	return address
}
