package integration

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/bench/wire"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
)

// TestStreamUnderLoad kills hooks and the engine while sixty parents are edited without a pause.
// All written texts come from parents, every child is created once, and complete sets are sent only
// if one side has lost its state.
func TestStreamUnderLoad(t *testing.T) {
	const parents = 60
	k := start(t)
	ports, err := cluster.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	addresses := []string{fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])}
	engine, labels := ownEngine(k)
	first := mirrorWith(k, "first", "--listen", addresses[0])
	run(t, k, kit.Composite{Sync: "stream:ipv4:" + strings.Join(addresses, ","), Labels: labels})
	mark := k.Mark()
	history := k.History("v1/ConfigMap")
	c := startCrowd(k, parents)
	c.await()
	due := parents
	countsOf(k, engine).atMost(t, due, "each parent is new")

	if err := first.Restart(); err != nil {
		t.Fatal(err)
	}
	c.await()
	due += parents
	countsOf(k, engine).atMost(t, due, "the hook was killed")

	second := mirrorWith(k, "second", "--listen", addresses[1])
	listening(k, second)
	k.Eventually("the second hook has parents", func() error {
		if c.servedBy("second") == 0 {
			return errors.New("it has none")
		}
		return nil
	})
	c.await()
	moved := c.servedBy("second")
	if moved == parents {
		t.Errorf("the second hook has all %d parents, want some with the first", parents)
	}
	due += moved
	countsOf(k, engine).atMost(t, due, fmt.Sprintf("a second hook has joined, and has taken %d parents", moved))

	if err := second.Kill(); err != nil {
		t.Fatal(err)
	}
	c.await()
	countsOf(k, engine).atMost(t, due, "the second hook was killed; the first still knows its parents from before")
	if err := second.Restart(); err != nil {
		t.Fatal(err)
	}
	k.Eventually("the second hook has its parents again", func() error {
		if n := c.servedBy("second"); n != moved {
			return fmt.Errorf("it has %d of %d", n, moved)
		}
		return nil
	})
	c.await()
	due += moved
	countsOf(k, engine).atMost(t, due, "the second hook is back, without its state")

	if err := engine.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := engine.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.await()
	c.halt()
	countsOf(
		k,
		engine,
	).atMost(
		t,
		2*parents,
		"the engine was killed; parents may have been asked about before the second stream was open",
	)
	c.judge(history)
	c.judgeWrites(mark)
}

// TestConnectionIsCut closes the connection between engine and hook while both run: the hook's
// state stays valid.
func TestConnectionIsCut(t *testing.T) {
	const parents = 12
	k := start(t)
	engine, labels := ownEngine(k)
	proxy, err := wire.Start(mirrorProcess(k, "").address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	run(t, k, kit.Composite{Sync: "stream:" + proxy.Address(), Labels: labels})
	history := k.History("v1/ConfigMap")
	c := startCrowd(k, parents)
	c.await()
	for cut := range 3 {
		before := countsOf(k, engine)
		if err := proxy.Cut(); err != nil {
			t.Fatal(err)
		}
		k.Eventually("the session continues", func() error {
			if now := countsOf(k, engine); now.Kept+now.Lost == before.Kept+before.Lost {
				return errors.New("it does not")
			}
			return nil
		})
		c.await()
		// A call in progress may have changed the state of only one side when the connection is cut.
		now := countsOf(k, engine)
		now.atMost(t, parents+now.Lost, fmt.Sprintf("the connection was cut %d times", cut+1))
		if now.Kept <= now.Lost || now.Kept+now.Lost != (cut+1)*parents {
			t.Errorf("in %d cuts %d parents were kept and %d lost, want all %d, most of them kept", cut+1, now.Kept,
				now.Lost, (cut+1)*parents)
		}
	}
	c.halt()
	c.judge(history)
}

// anotherBuild is a copy of this program with one more byte at its end, which makes it another
// build for the SDK.
func anotherBuild(t *testing.T) string {
	t.Helper()
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rebuilt")
	if err := proc.WriteProgram(path, append(program, 0)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTwoBuilds deploys another build of a hook, and rolls it back: the engine asks again about
// unchanged parents, and the current build answers.
func TestTwoBuilds(t *testing.T) {
	k := start(t)
	ports, err := cluster.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	addresses := []string{fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])}
	mirrorWith(k, "first", "--listen", addresses[0])
	run(t, k, kit.Composite{Sync: "stream:ipv4:" + strings.Join(addresses, ",")})
	const parents = 8
	for i := range parents {
		name := fmt.Sprintf("web-%d", i)
		k.Apply(parent(name, page(name, "text: one")))
	}
	answers := func(by string) {
		k.Helper()
		for i := range parents {
			await(k, "Web", fmt.Sprintf("web-%d", i), "status.by", by)
		}
	}
	answers("first")
	for i := range parents {
		await(k, "v1/ConfigMap", fmt.Sprintf("web-%d", i), "data.text", "one")
	}
	mark := k.Mark()
	second := k.Process(proc.Spec{
		Name: "second", Path: anotherBuild(t), Args: []string{"--listen", addresses[1]}, Env: []string{asHook + "=second"},
	})
	answers("second")
	if err := second.Kill(); err != nil {
		t.Fatal(err)
	}
	answers("first")
	if diff := cmp.Diff([]string{}, k.ChildWrites(mark)); diff != "" {
		t.Errorf("writes to children, which are the same for both builds (-want +got):\n%s", diff)
	}
}
