package main

import (
	"context"

	"github.com/hookloop/hookloop/engine/actor"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/examples/embedded/api"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// longText is the number of bytes from which on a text is long.
const longText = 12

// controllers returns the controllers in Go that run beside the hook.
func controllers() []controller.Declared {
	return []controller.Declared{
		controller.New[*api.Note]("note-sizes").Reconciler(controller.ReconcileFunc[*api.Note](label)),
		actor.New("boards", boardActor{}).Owns(actor.TypeOf[*corev1.ConfigMap]()),
	}
}

// label gives a note the label size.
func label(ctx context.Context, req *controller.Request[*api.Note]) (controller.Result, error) {
	if req.Object == nil || req.Object.DeletionTimestamp != nil {
		return controller.Result{}, nil
	}
	return controller.Result{}, controller.PatchMetadata(ctx, req.Runtime, req.Object, func(n *api.Note) {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels["size"] = "short"
		if len(n.Spec.Text) >= longText {
			n.Labels["size"] = "long"
		}
	})
}

// boardActor makes a ConfigMap of a board, once the board's note has its own.
type boardActor struct{}

func (boardActor) Observe(ctx actor.Context[*api.Board]) (*actor.Action[*api.Board], error) {
	note, err := actor.DependencyOf[*api.Note](ctx)
	if err != nil {
		return nil, err
	}
	return actor.Do("ShowNote", func(ctx actor.Context[*api.Board]) error {
		page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "board-" + ctx.Target.Name}}
		return actor.CreateOrUpdateChild(ctx, page, func(o *corev1.ConfigMap) error {
			o.Data = map[string]string{"shows": note.Spec.Text}
			return nil
		})
	}), nil
}

func (boardActor) Finalize(ctx actor.Context[*api.Board]) (bool, error) { return actor.Cleanup(ctx) }
