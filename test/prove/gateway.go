package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/hookloop/hookloop/test/cluster"
)

// gateway is the engine's gateway for hooks that dial in.
type gateway struct {
	address string
	// dir has tls.crt and tls.key.
	dir string
}

// newGateway takes a free port, and makes the certificate by the commands of the example dial-in.
func newGateway(ctx context.Context, dir string) (gateway, error) {
	ports, err := cluster.FreePorts(1)
	if err != nil {
		return gateway{}, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return gateway{}, err
	}
	script := filepath.Join(cluster.Root(), "examples", "dial-in", "certificate.sh")
	//nolint:gosec // a script of the repository
	if out, err := exec.CommandContext(ctx, script, dir).CombinedOutput(); err != nil {
		return gateway{}, fmt.Errorf("%s: %w: %s", script, err, out)
	}
	return gateway{address: fmt.Sprintf("127.0.0.1:%d", ports[0]), dir: dir}, nil
}

// flags returns the engine's flags.
func (g gateway) flags() []string {
	return []string{
		"--gateway-address=" + g.address,
		"--gateway-tls-cert=" + filepath.Join(g.dir, "tls.crt"),
		"--gateway-tls-key=" + filepath.Join(g.dir, "tls.key"),
	}
}

// env returns the environment with the gateway's address for a script.
func (g gateway) env() []string {
	return []string{"GATEWAY=" + g.address, "GATEWAY_CA=" + filepath.Join(g.dir, "tls.crt")}
}
