package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/memapi"
	"github.com/hookloop/hookloop/manifests"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// deadline bounds each wait of a test.
const deadline = 30 * time.Second

var (
	composites = schema.GroupVersionResource{
		Group: "metacontroller.k8s.io", Version: "v1alpha1", Resource: "compositecontrollers",
	}
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	configMaps      = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// openLetter is a transport of the test. Its hook answers with a ConfigMap of the parent's name, or
// fails as the parent's label "letter" says.
func openLetter(config hook.Config) (*hook.Opened, error) {
	var field struct{ To string }
	if err := json.Unmarshal(config.Field, &field); err != nil {
		return nil, err
	}
	if field.To == "" {
		return nil, errors.New("to: is missing; expected the name of a hook")
	}
	return &hook.Opened{Address: "letter:" + field.To, Hook: hook.Func(
		func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
			switch q.Parent.Labels()["letter"] {
			case "panics":
				panic("as the test asks for")
			case "nothing":
				return nil, nil
			}
			child := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"engine":%q}}`,
				q.Parent.Name(), config.Engine)
			if _, err := config.Reserve(ctx, int64(len(child))); err != nil {
				return nil, err
			}
			return &hook.Answer{Children: []json.RawMessage{json.RawMessage(child)}}, nil
		})}, nil
}

// start runs an engine with the transport "letter" on an API server in memory.
func start(t *testing.T) (dynamic.Interface, *prometheus.Registry) {
	t.Helper()
	documents, err := manifests.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, document := range documents {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(document, crd); err != nil {
			t.Fatal(err)
		}
		crds = append(crds, crd)
	}
	cluster, err := memapi.New(memapi.Options{CRDs: crds})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	registry := prometheus.NewRegistry()
	e, err := engine.New(t.Context(), engine.Config{
		Rest: cluster.Config(), Openers: hook.Openers{"letter": openLetter}, Version: "v1.2.3", Workers: 1,
		Registry: registry,
		Tracer:   noop.NewTracerProvider().Tracer(""), Sampled: func(trace.TraceID) bool { return false },
		FieldManager: "metacontroller", DiscoveryInterval: time.Minute, StaleAfter: engine.DefaultStaleAfter,
		CustomizeMaxAge: engine.DefaultCustomizeMaxAge, EventsQPS: 1, EventsBurst: 25,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		e.Close()
	})
	client, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client, registry
}

// declare creates a CompositeController of ServiceAccounts with the transport.
func declare(t *testing.T, client dynamic.Interface, transport string) {
	t.Helper()
	c := &unstructured.Unstructured{}
	text := `{apiVersion: metacontroller.k8s.io/v1alpha1, kind: CompositeController, metadata: {name: hello}, spec: {
		generateSelector: true, parentResource: {apiVersion: v1, resource: serviceaccounts},
		childResources: [{apiVersion: v1, resource: configmaps}],
		hooks: {sync: {version: v2, transport: ` + transport + `}}}}`
	if err := yaml.Unmarshal([]byte(text), &c.Object); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(composites).Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, deadline, true,
		func(ctx context.Context) (bool, error) {
			last = check(ctx)
			return last == nil, nil
		})
	if err != nil {
		t.Fatalf("%s: %v", what, last)
	}
}

// TestTransport syncs parents by a transport that is not Hookloop's own, one of which panics.
func TestTransport(t *testing.T) {
	client, registry := start(t)
	declare(t, client, `{name: letter, config: {to: home}}`)
	for name, how := range map[string]string{"good": "", "panics": "panics", "nothing": "nothing"} {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount"}}
		o.SetName(name)
		o.SetLabels(map[string]string{"letter": how})
		if _, err := client.Resource(serviceAccounts).Namespace("default").Create(
			t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the good parent has its child", func(ctx context.Context) error {
		child, err := client.Resource(configMaps).Namespace("default").Get(ctx, "good", metav1.GetOptions{})
		if err != nil {
			return err
		}
		told, _, err := unstructured.NestedString(child.Object, "data", "engine")
		if err != nil {
			return err
		}
		if told != "v1.2.3" {
			return fmt.Errorf("the transport learned the version %q, want v1.2.3", told)
		}
		return nil
	})
	want := map[string]bool{"200": true, "HookFailed": true, "InvalidHookAnswer": true}
	eventually(t, "each result is counted", func(context.Context) error {
		families, err := registry.Gather()
		if err != nil {
			return err
		}
		got := map[string]bool{}
		for _, f := range families {
			if f.GetName() != "metacontroller_sync_requests_total" {
				continue
			}
			for _, m := range f.GetMetric() {
				labels := map[string]string{}
				for _, l := range m.GetLabel() {
					labels[l.GetName()] = l.GetValue()
				}
				if labels["url"] == "letter:home" {
					got[labels["code"]] = true
				}
			}
		}
		for code := range want {
			if !got[code] {
				return fmt.Errorf("got the codes %v, want %v", got, want)
			}
		}
		return nil
	})
}

// TestTransportOfAnotherProgram names what is wrong on the controller.
func TestTransportOfAnotherProgram(t *testing.T) {
	for transport, want := range map[string]string{
		`{name: telegram}`: `spec.hooks.sync.transport.name: "telegram" is no transport of this program; ` +
			`expected one of "letter"`,
		`{name: letter}`: "spec.hooks.sync.transport.config: to: is missing; expected the name of a hook",
	} {
		t.Run(transport, func(t *testing.T) {
			client, _ := start(t)
			declare(t, client, transport)
			eventually(t, "the controller says so", func(ctx context.Context) error {
				o, err := client.Resource(composites).Get(ctx, "hello", metav1.GetOptions{})
				if err != nil {
					return err
				}
				if status := fmt.Sprint(o.Object["status"]); !strings.Contains(status, want) ||
					!strings.Contains(status, "InvalidSpec") {
					return fmt.Errorf("its status is %s", status)
				}
				return nil
			})
		})
	}
}
