package kit

import "github.com/hookloop/hookloop/test/proc"

// Process starts a child process, which can be paused, killed and restarted, and which the test
// owns.
func (k *Kit) Process(spec proc.Spec) *proc.Process {
	k.Helper()
	p, err := proc.Start(spec)
	if err != nil {
		k.Fatal(err)
	}
	k.Own(p)
	return p
}

// Own has the test's end kill a process; if the test failed, it also shows what the process
// wrote.
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
