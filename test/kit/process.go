package kit

import "github.com/hookloop/hookloop/test/proc"

// Process starts a child process, which can be paused, killed and restarted. The test's end kills it; where the test failed, it also shows
// what the process wrote.
func (k *Kit) Process(spec proc.Spec) *proc.Process {
	k.Helper()
	p, err := proc.Start(spec)
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() {
		if err := p.Kill(); err != nil {
			k.Error(err)
		}
		if k.Failed() {
			k.Logf("%s wrote:\n%s", spec.Name, p.Output())
		}
	})
	return p
}
