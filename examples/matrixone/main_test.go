package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/controllertest"
	"github.com/hookloop/hookloop/examples/matrixone/api"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// start runs the actors with a database, without any process.
func start(t *testing.T) *controllertest.Env {
	t.Helper()
	types, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(document, crd); err != nil {
			t.Fatal(err)
		}
		crds = append(crds, crd)
	}
	database := &api.MatrixOneCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "mo"},
		Spec:       api.MatrixOneClusterSpec{Image: "matrixone:1", LogReplicas: 3, DNReplicas: 2, CNReplicas: 2},
	}
	env := controllertest.New(t, controllertest.Options{
		Scheme: types, CRDs: crds, Objects: []controllertest.Object{database},
	})
	env.Run(actors()...)
	env.UntilQuiet(t.Context())
	return env
}

func key(name string) controllertest.Key { return controllertest.Key{Namespace: "demo", Name: name} }

// groups returns the names of the groups with processes.
func groups(env *controllertest.Env) string {
	var names []string
	for _, o := range controllertest.List[*appsv1.StatefulSet](env, "demo") {
		names = append(names, o.Name)
	}
	return strings.Join(names, " ")
}

// runProcesses makes the processes of a group ready: the data plane of the test.
func runProcesses(t *testing.T, env *controllertest.Env, group string) {
	t.Helper()
	controllertest.UpdateStatus(env, key(group), func(o *appsv1.StatefulSet) {
		o.Status.ObservedGeneration = o.Generation
		o.Status.Replicas, o.Status.ReadyReplicas, o.Status.UpdatedReplicas =
			*o.Spec.Replicas, *o.Spec.Replicas, *o.Spec.Replicas
	})
	env.UntilQuiet(t.Context())
}

func TestGroupsStartInOrder(t *testing.T) {
	env := start(t)
	for _, step := range []struct{ running, ready string }{
		{"mo-log", "mo-log"}, {"mo-dn mo-log", "mo-dn"}, {"mo-cn mo-dn mo-log", "mo-cn"},
	} {
		if got := groups(env); got != step.running {
			t.Fatalf("groups with processes: %s; want %s", got, step.running)
		}
		runProcesses(t, env, step.ready)
	}
	database := controllertest.Get[*api.MatrixOneCluster](env, key("mo"))
	if !meta.IsStatusConditionTrue(database.Status.Conditions, api.Ready) {
		t.Errorf("conditions of the database: %+v; want Ready=True", database.Status.Conditions)
	}
}

func TestWaitingGroupNamesWhatIsMissing(t *testing.T) {
	env := start(t)
	group := controllertest.Get[*api.DNGroup](env, key("mo-dn"))
	met := meta.FindStatusCondition(group.Status.Conditions, "DependenciesMet")
	if met == nil || met.Status != metav1.ConditionFalse || !strings.Contains(met.Message, `"demo/mo-log"`) {
		t.Errorf("DependenciesMet of the data group: %+v; want False with the name of the log", met)
	}
}

func TestGroupsGoInReverseOrder(t *testing.T) {
	env := start(t)
	for _, group := range []string{"mo-log", "mo-dn", "mo-cn"} {
		runProcesses(t, env, group)
	}
	env.Audit()
	controllertest.Delete[*api.MatrixOneCluster](env, key("mo"))
	env.UntilQuiet(t.Context())
	var deleted []string
	for _, w := range env.Audit() {
		if w.Verb == "delete" && w.Resource == "statefulsets.apps" {
			deleted = append(deleted, w.Name)
		}
	}
	if got := strings.Join(deleted, " "); got != "mo-cn mo-dn mo-log" {
		t.Errorf("processes were deleted in the order %q; want compute, data, log", got)
	}
	if left := groups(env); left != "" {
		t.Errorf("groups left: %s", left)
	}
}
