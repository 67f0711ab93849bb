package kit

import "github.com/hookloop/hookloop/internal/proc"

// Process starts a child process, and kills it when the test ends. The test can pause, kill and
// restart it.
func (k *Kit) Process(spec proc.Spec) *proc.Process {
	k.Helper()
	p, err := proc.Start(spec)
	if err != nil {
		k.Fatal(err)
	}
	k.Own(p)
	return p
}

// Own kills a process when the test ends. If the test has failed, it prints what the process wrote.
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
