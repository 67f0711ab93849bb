package memapi

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// DefaultHistory is the number of events that the server keeps for each resource.
const DefaultHistory = 10_000

// Options configures a Server. The zero value is usable.
type Options struct {
	// CRDs are served from the start.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// History is the number of events that are kept for each resource; 0 means DefaultHistory. A
	// watch that needs older ones gets "410 Gone".
	History int
	// Source has the objects with which the server begins; it may be nil. They are read at the first
	// get, list or watch of their resource.
	Source Source
}

// Server is an API server in memory. It is safe for concurrent use.
type Server struct {
	options Options
	codecs  serializer.CodecFactory
	scheme  *runtime.Scheme
	typed   managedfields.TypeConverter
	// filling lets one request at a time read the objects of the source.
	filling sync.Mutex

	mu sync.Mutex // guards the fields below
	// version is the last resourceVersion.
	version     uint64
	resources   map[schema.GroupVersionResource]*resource
	collections map[schema.GroupResource]*collection
	// objects finds an object by its UID, dependents the objects with an owner reference to a UID.
	objects    map[types.UID]*stored
	dependents map[types.UID]map[types.UID]struct{}
	// foreign are owners of restored objects that the server does not have; they count as existing.
	foreign map[types.UID]bool
	// garbage are the objects that the garbage collector has to look at.
	garbage []task
	audit   audit
	faults  []*Fault
	closed  bool
}

// New returns a Server with the namespaces default, kube-system, kube-public and kube-node-lease.
func New(o Options) (*Server, error) {
	if o.History <= 0 {
		o.History = DefaultHistory
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	s := &Server{
		options: o, scheme: scheme, codecs: serializer.NewCodecFactory(scheme),
		typed:       applyconfigurations.NewTypeConverter(clientscheme.Scheme),
		version:     100,
		resources:   map[schema.GroupVersionResource]*resource{},
		collections: map[schema.GroupResource]*collection{},
		objects:     map[types.UID]*stored{},
		dependents:  map[types.UID]map[types.UID]struct{}{},
		foreign:     map[types.UID]bool{},
		audit:       audit{counts: map[Count]int{}},
	}
	if err := s.serveBuiltins(); err != nil {
		return nil, err
	}
	return s, s.begin()
}

// begin creates the objects that every cluster has, and the CRDs of the options.
func (s *Server) begin() error {
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		namespace := map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
		}
		if err := s.Put(context.Background(), namespace); err != nil {
			return err
		}
	}
	for _, crd := range s.options.CRDs {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			return err
		}
		object["apiVersion"], object["kind"] = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
		delete(object, "status")
		if err := s.Put(context.Background(), object); err != nil {
			return fmt.Errorf("CustomResourceDefinition %s: %w", crd.Name, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.audit.reset()
	return nil
}

// Config returns a client configuration for the server.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: "http://memapi.invalid", Transport: s, QPS: -1}
}

// Close ends all watches and refuses all further requests.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, c := range s.collections {
		c.dropWatches()
	}
}

// ServeHTTP answers a request, for tests that need a listener.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := s.answer(r)
	a.header(w.Header())
	w.WriteHeader(a.code)
	if a.watch == nil {
		_, _ = w.Write(a.body) // the client may have disconnected
		return
	}
	defer a.watch.close()
	flusher, _ := w.(http.Flusher)
	for {
		if flusher != nil {
			flusher.Flush()
		}
		frames, err := a.watch.next(r.Context())
		if err != nil {
			return
		}
		if _, err := w.Write(frames); err != nil {
			return
		}
	}
}
