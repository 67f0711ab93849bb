package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/internal/act/circuit"
	"github.com/hookloop/hookloop/engine/object"
)

var circuitSettings = circuit.Config{Limit: 100, Pause: time.Minute}

// version is an object of a fight: its resourceVersion and a value.
func version(t testing.TB, n int, value string) *object.Object {
	t.Helper()
	o, err := object.Decode(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop",`+
		`"name":"a","uid":"u","resourceVersion":"%d","labels":{"app":"shop"}},"data":{"color":%q,"size":"1"}}`, n, value))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestCircuitsAreBounded: closed circuits make room for others, an open one stays, and all are
// counted.
func TestCircuitsAreBounded(t *testing.T) {
	var s circuits
	before := circuitKeys.Load()
	fought := Key{Name: "fought"}
	k := s.add(fought)
	for i := range 2 * circuitSettings.Limit {
		if _, tripped := k.count(circuitSettings, time.Unix(1e9, 0), version(t, 1, "x"), version(t, i, "blue"),
			version(t, i+1, "red")); tripped {
			break
		}
	}
	if changed, open := s.setOpen(fought, k); !changed || open != 1 {
		t.Fatalf("%d circuits are open (changed: %v), want a new one", open, changed)
	}
	for i := range 3 * maxCircuits {
		s.add(Key{Name: fmt.Sprint(i)})
	}
	if n := len(s.byKey); n != maxCircuits {
		t.Errorf("%d circuits, want %d", n, maxCircuits)
	}
	if s.get(fought) != k {
		t.Error("the open circuit is forgotten")
	}
	if !s.forget(fought) || s.opened() != 0 || s.get(fought) != nil {
		t.Error("a forgotten circuit is left")
	}
	s.setOpen(fought, k) // was forgotten for others meanwhile
	s.setOpen(fought, k)
	if n := circuitKeys.Load() - before; n != int64(len(s.byKey)) {
		t.Errorf("%d circuits are counted, want %d", n, len(s.byKey))
	}
	s.clear()
	if n := circuitKeys.Load() - before; n != 0 || s.opened() != 0 {
		t.Errorf("%d circuits are counted after the controller's end, want none", n)
	}
}

// TestChangesByUsers: what reconciles rewrite, and the status, is no user's change of the key's
// object.
func TestChangesByUsers(t *testing.T) {
	decode := func(n int, rest string) *object.Object {
		o, err := object.Decode(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop",`+
			`"name":"a","uid":"u","resourceVersion":"%d","labels":{"app":"shop"}},%s}`, n, rest))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for rest, user := range map[string]bool{
		`"data":{"color":"red"},"status":{"n":1}`:                false,
		`"data":{"color":"red"},"status":{"n":2}`:                false,
		`"data":{"color":{"deep":"blue"}},"status":{"n":1}`:      false,
		`"data":{"color":"red","colors":"x"},"status":{"n":1}`:   true,
		`"spec":{},"data":{"color":"red"},"status":{"n":1}`:      true,
		`"data":{"color":"red","size":"2"},"status":{"n":1}`:     true,
		`"data":{"color":"blue","size":"1"},"status":{"none":0}`: true,
	} {
		k := &keyCircuit{own: map[string]struct{}{"data.color": {}}}
		k.seen = decode(1, `"data":{"color":"red"},"status":{"n":1}`)
		k.observe(decode(2, rest), true)
		if (k.identity == 1) != user {
			t.Errorf("%s: a change by a user: %v, want %v", rest, k.identity == 1, user)
		}
	}
}

// BenchmarkCircuit is what one write costs in its key's circuit: of an object that is written now
// and then, and of one that is written often.
func BenchmarkCircuit(b *testing.B) {
	for name, every := range map[string]time.Duration{"seldom": 10 * time.Second, "often": 100 * time.Millisecond} {
		b.Run(name, func(b *testing.B) {
			k := &keyCircuit{}
			now := time.Unix(1e9, 0)
			k.breaker.Begin(now, 0, []object.Ref{{Name: "cause"}})
			before := version(b, 1, "blue")
			answer := version(b, 2, "red")
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(every)
				k.count(circuitSettings, now, before, before, answer)
			}
		})
	}
}
