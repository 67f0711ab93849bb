package kit

import "github.com/hookloop/hookloop/internal/proc"

// Process starts a child process, which can be paused, killed and restarted. The end of the test
// kills it.
func (k *Kit) Process(spec proc.Spec) *proc.Process {
	k.Helper()
	p, err := proc.Start(spec)
	if err != nil {
		k.Fatal(err)
	}
	k.Own(p)
	return p
}

// Own kills a process at the end of the test. If the test failed, it also prints the output of the
// process.
func (k *Kit) Own(p *proc.Process) {
	k.Helper()
	k.Cleanup(func() {
		if err := p.Kill(); err != nil {
			k.Error(err)
		}
		if k.Failed() {
			k.Logf("%s wrote:\n%s", p.Name(), p.Output())
		}
	})
}
