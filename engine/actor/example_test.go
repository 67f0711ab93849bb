package actor_test

import (
	"fmt"

	"github.com/hookloop/hookloop/engine/actor"
	"github.com/hookloop/hookloop/engine/controller"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Page is a type of the user.
type Page struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Text string `json:"text"`
	// Site has only a namespace and a name in the API server.
	Site   *Site `json:"site,omitempty"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status,omitempty"`
}

// Site is a type that a Page depends on.
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status,omitempty"`
}

// DeepCopyObject implements runtime.Object; controller-gen generates such methods.
func (p *Page) DeepCopyObject() runtime.Object { c := *p; return &c }

// DeepCopyObject implements runtime.Object.
func (s *Site) DeepCopyObject() runtime.Object { c := *s; return &c }

// Dependencies implements actor.Dependent.
func (p *Page) Dependencies() []actor.Dependency {
	return []actor.Dependency{actor.Require(p.Site, actor.ConditionTrue("Ready"))}
}

// pageActor keeps a ConfigMap with the text of each page.
type pageActor struct{}

func (a pageActor) Observe(ctx actor.Context[*Page]) (*actor.Action[*Page], error) {
	text, err := controller.Get[*corev1.ConfigMap](ctx, controller.KeyOf(ctx.Target))
	switch {
	case controller.IsNotFound(err), err == nil && text.Data["text"] != ctx.Target.Text:
		return actor.Do("WriteText", a.writeText), nil
	}
	return nil, err
}

func (pageActor) writeText(ctx actor.Context[*Page]) error {
	text := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: ctx.Target.Name}}
	return actor.CreateOrUpdateChild(ctx, text, func(c *corev1.ConfigMap) error {
		c.Data = map[string]string{"text": ctx.Target.Text}
		return nil
	})
}

func (pageActor) Finalize(ctx actor.Context[*Page]) (bool, error) { return actor.Cleanup(ctx) }

// An actor is declared with the types of its children. server.Config.Controllers takes it.
func Example() {
	declared := actor.New("page", pageActor{}).Owns(actor.TypeOf[*corev1.ConfigMap]())
	fmt.Println(declared.Name())
	// Output: page
}

// A field that names a dependency keeps nothing but the name.
func ExampleReference() {
	site := &Site{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front", UID: "1"}}
	page := &Page{Site: actor.Reference(site)}
	fmt.Printf("%s/%s %q\n", page.Site.Namespace, page.Site.Name, page.Site.UID)
	// Output: shop/front ""
}

// Conditions are read from any type that has them.
func ExampleConditionsOf() {
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: "Ready", Status: "True"}}}}
	conditions, err := actor.ConditionsOf(pod)
	fmt.Println(conditions[0].Type, conditions[0].Status, err)
	// Output: Ready True <nil>
}
