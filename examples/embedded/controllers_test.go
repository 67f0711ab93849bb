package main

import (
	"errors"
	"testing"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/controllertest"
	"github.com/hookloop/hookloop/examples/embedded/api"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

func key(name string) controllertest.Key { return controllertest.Key{Namespace: "shop", Name: name} }

// TestABoardWaitsForItsNote runs the controller in Go and the actor. The test takes the part of the
// hook: it sets the condition Synced.
func TestABoardWaitsForItsNote(t *testing.T) {
	types := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(types), api.AddToScheme(types)); err != nil {
		t.Fatal(err)
	}
	env := controllertest.New(t, controllertest.Options{
		Scheme: types, CRDs: controllertest.ReadCRDs(t, "crd.yaml"),
		Objects: []controllertest.Object{
			&api.Board{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "kitchen"}, Spec: api.BoardSpec{Note: "milk"}},
			&api.Note{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "milk"}, Spec: api.NoteSpec{Text: "Buy milk"}},
		},
	})
	env.Run(controllers()...)
	env.UntilQuiet(t.Context())
	if size := controllertest.Get[*api.Note](env, key("milk")).Labels["size"]; size != "short" {
		t.Errorf("label size = %q, want short", size)
	}
	if _, err := controllertest.Find[*corev1.ConfigMap](env, key("board-kitchen")); err == nil {
		t.Error("the board is shown before its note is synced")
	}
	controllertest.UpdateStatus(env, key("milk"), func(n *api.Note) {
		controller.SetConditions(n, &n.Status.Conditions, controller.True("Synced", "Synced", "it has its ConfigMap"))
	})
	env.UntilQuiet(t.Context())
	if got := controllertest.Get[*corev1.ConfigMap](env, key("board-kitchen")).Data["shows"]; got != "Buy milk" {
		t.Errorf("the board shows %q, want the text of the note", got)
	}
}
