package view_test

import (
	"errors"
	"fmt"

	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/internal/watch/viewtest"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A reader has two results: a view of the objects, or an error. "Unknown" is never "empty".
func ExampleReader() {
	services := object.Resource{
		GVK: schema.GroupVersionKind{Version: "v1", Kind: "Service"}, Plural: "services", Namespaced: true,
	}
	web, err := object.Decode([]byte(
		`{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"web"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	var reader view.Reader = &viewtest.Reader{Objects: []*object.Object{web}}
	v, err := reader.View(services)
	var unknown *view.Error
	if errors.As(err, &unknown) {
		fmt.Println("not known:", unknown.State)
		return
	}
	fmt.Println(v.List("shop").Len(), v.Get("shop", "web").Ref())
	// Output: 1 Service.v1 "shop/web"
}

// An index finds objects by a value that a function returns for each of them. The store of a
// controller holds it after Controller.Index.
func ExampleIndex() {
	pods := object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Plural: "pods", Namespaced: true}
	pod, err := object.Decode([]byte(
		`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":"web","labels":{"app":"web"}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	byApp := view.NewIndex("app", func(o *object.Object) []string { return []string{o.Labels()["app"]} })
	store := view.NewStore(pods)
	defer store.AddIndex(byApp)()
	store.Replace([]*object.Object{pod}, "1")
	v, err := store.View()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(v.By(byApp, "web").Len(), v.By(byApp, "api").Len())
	// Output: 1 0
}
