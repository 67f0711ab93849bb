package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/test/kit"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestMapWritesUnderWay disturbs an engine that writes the outputs of many inputs at a time: it is
// killed, an output is refused, another one is edited, an input is deleted before its output is
// made, and the parent is deleted. Each output is created once, and none is left in the end.
func TestMapWritesUnderWay(t *testing.T) {
	k := start(t)
	hook := k.Hook(func(r kit.Request) any {
		if strings.HasSuffix(r.MapKey, "/refused") && r.Input != nil && !r.Finalizing {
			return map[string]any{"outputs": []any{map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "refused-0"},
				"data": map[string]any{"no key": "one"},
			}}}
		}
		if r.Input == nil && !r.Finalizing { // no output outlives its input
			return map[string]any{"outputs": []any{}}
		}
		return mapPages(r)
	}).URL
	// The limit of requests spreads the writes, so that the disturbances come between them.
	engine, labels := ownEngine(k, "--workers=2", "--client-go-qps=10", "--client-go-burst=1")
	runPages(k, kit.Mapping{Map: hook, Tombstone: hook, Finalize: hook, Labels: labels})
	mark := k.Mark()
	var want, creates []string
	for i := range 24 {
		name := fmt.Sprintf("i%02d", i)
		input(k, name, "map: me, pages: '1', text: one")
		if i < 23 {
			want = append(want, name+"-0 one")
			creates = append(creates, "create configmaps "+name+"-0")
		}
	}
	input(k, "refused", "map: me")
	k.Eventually("some outputs are made", func() error {
		if n := len(outputsOf(k)); n < 5 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	if err := engine.Kill(); err != nil {
		t.Fatal(err)
	}
	made := outputsOf(k)
	edited, _, _ := strings.Cut(made[0], " ")
	k.Patch("v1/ConfigMap", edited, "data: {text: edited}")
	if err := engine.Restart(); err != nil {
		t.Fatal(err)
	}
	k.Delete("v1/Secret", "i23")
	awaitPages(k, want...)
	await(k, "Web", "web", "status.failed.total", "1")
	var got []string
	for _, w := range k.ChildWrites(mark) {
		w = strings.TrimSuffix(w, " 504") // its engine was killed before the answer
		if strings.HasPrefix(w, "create configmaps i") && !strings.HasPrefix(w, "create configmaps i23-0") {
			got = append(got, w)
		}
	}
	if diff := cmp.Diff(creates, slices.Compact(sorted(got))); diff != "" {
		t.Errorf("the creations of outputs (-want +got):\n%s", diff)
	}
	for i := range 23 {
		input(k, fmt.Sprintf("i%02d", i), "map: me, pages: '1', text: two")
	}
	k.Delete("Web", "web")
	k.Eventually("the parent is gone", func() error {
		if _, err := k.Lookup("Web", "web"); !apierrors.IsNotFound(err) {
			return errors.New("it is there")
		}
		return nil
	})
	awaitPages(k)
}
