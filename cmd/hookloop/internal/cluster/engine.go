package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Engine says which running engine to ask. The zero value asks the Pods that match
// [DefaultSelector], in any namespace.
type Engine struct {
	// MetricsURL is where the engine serves its metrics. If it is empty, the Pods are asked through
	// the API server.
	MetricsURL string
	// Namespace is where the engine's Pods are; empty means any.
	Namespace string
	// Selector finds the engine's Pods by their labels; empty means DefaultSelector.
	Selector string
}

const (
	// DefaultSelector matches the labels that the manifests and the chart give the engine's Pods.
	DefaultSelector = "app.kubernetes.io/name=hookloop"
	// metricsPort is the name of the port that serves metrics. defaultPort is used if a Pod does not
	// name it.
	metricsPort, defaultPort = "metrics", "9999"
	// maxEngines limits how many Pods are asked.
	maxEngines = 20
	// engineTimeout limits one request to an engine.
	engineTimeout = 10 * time.Second
	// maxResponse limits the size of an engine's response.
	maxResponse = 64 << 20
	elsewhere   = "if the engine runs elsewhere, name its metrics address, such as --metrics-url http://127.0.0.1:9999"
)

// Response holds what one engine has answered.
type Response struct {
	// From names the Pod, or the address.
	From        string
	ContentType string
	Body        []byte
	// Err says why the Pod has not answered.
	Err error
}

// engines sends requests to the engines of a cluster.
type engines struct {
	Engine
	// pods lists the Pods. It is nil if MetricsURL is set.
	pods kubernetes.Interface
}

// Check returns an error if a field is invalid.
func (e Engine) Check() error {
	if e.MetricsURL == "" {
		return nil
	}
	u, err := url.Parse(e.MetricsURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("--metrics-url: got %q, expected a URL such as http://127.0.0.1:9999", e.MetricsURL)
	}
	return nil
}

// newEngines makes the client. It sends no request.
func newEngines(e Engine, config *rest.Config) (*engines, error) {
	if e.MetricsURL != "" {
		return &engines{Engine: e}, nil
	}
	config = rest.CopyConfig(config)
	config.Wrap(bounded)
	pods, err := kubernetes.NewForConfig(config)
	return &engines{e, pods}, err
}

// bounded makes a transport that refuses a response of more than maxResponse bytes, because any Pod
// may carry the engine's label.
func bounded(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil {
			response.Body = http.MaxBytesReader(nil, response.Body, maxResponse)
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// get asks all engines at the same time and returns their responses in the order of the Pods.
// Replicas that do not lead answer as well. It returns an error only if no engine has answered.
func (e *engines) get(ctx context.Context, path string, query url.Values, accept string) ([]Response, error) {
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	if e.pods == nil {
		r, err := e.direct(ctx, path, query, accept)
		return []Response{r}, err
	}
	pods, err := e.find(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Response, len(pods))
	var asked sync.WaitGroup
	for i, pod := range pods {
		asked.Go(func() { all[i] = e.proxied(ctx, pod, path, query, accept) })
	}
	asked.Wait()
	if !slices.ContainsFunc(all, func(r Response) bool { return r.Err == nil }) {
		r := all[len(all)-1]
		return nil, fmt.Errorf("the engine's Pod %s %w; %s", r.From, r.Err, elsewhere)
	}
	return all, nil
}

// find lists the engine's running Pods.
func (e *engines) find(ctx context.Context) ([]corev1.Pod, error) {
	selector := e.Selector
	where := "in all namespaces"
	if selector == "" {
		selector = DefaultSelector
	}
	if e.Namespace != "" {
		where = "in namespace " + e.Namespace
	}
	list, err := e.pods.CoreV1().Pods(e.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: selector, FieldSelector: "status.phase=Running", Limit: maxEngines,
	})
	switch {
	case err != nil && e.Namespace == "":
		return nil, fmt.Errorf("the engine's Pods cannot be found %s: %w; name their namespace by --engine-namespace; %s",
			where, err, elsewhere)
	case err != nil:
		return nil, fmt.Errorf("the engine's Pods cannot be found %s: %w; %s", where, err, elsewhere)
	case len(list.Items) == 0:
		return nil, fmt.Errorf("no running Pod of an engine %s has the label %s; %s", where, selector, elsewhere)
	}
	return list.Items, nil
}

// proxied asks a Pod through the API server's proxy.
func (e *engines) proxied(ctx context.Context, pod corev1.Pod, path string, query url.Values, accept string) Response {
	request := e.pods.CoreV1().RESTClient().Get().Namespace(pod.Namespace).Resource("pods").SubResource("proxy").
		Name(utilnet.JoinSchemeNamePort("http", pod.Name, portOf(pod))).Suffix(path).SetHeader("Accept", accept)
	for name, values := range query {
		request.Param(name, strings.Join(values, ","))
	}
	r := Response{From: pod.Namespace + "/" + pod.Name}
	var err error
	r.Body, err = request.Do(ctx).ContentType(&r.ContentType).Raw()
	if err != nil {
		r.Err = fmt.Errorf("does not answer through the API server (it needs the right \"get\" on pods/proxy): %w", err)
	}
	return r
}

// portOf returns the port at which a Pod serves metrics.
func portOf(pod corev1.Pod) string {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == metricsPort {
				return fmt.Sprint(p.ContainerPort)
			}
		}
	}
	return defaultPort
}

// direct asks the engine at MetricsURL.
func (e *engines) direct(ctx context.Context, path string, query url.Values, accept string) (Response, error) {
	address := strings.TrimSuffix(strings.TrimSuffix(e.MetricsURL, "/"), "/metrics") + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return Response{}, err
	}
	request.Header.Set("Accept", accept)
	client := http.Client{Transport: bounded(http.DefaultTransport)}
	response, err := client.Do(request)
	if err != nil {
		return Response{}, fmt.Errorf("--metrics-url: the engine does not answer: %w", plain(err))
	}
	defer response.Body.Close() //nolint:errcheck // it has been read as far as it counts
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return Response{}, fmt.Errorf("--metrics-url: %s: %w", address, err)
	}
	if response.StatusCode != http.StatusOK {
		return Response{}, fmt.Errorf("--metrics-url: %s answers %s; expected an engine of this version", address,
			response.Status)
	}
	return Response{From: e.MetricsURL, ContentType: response.Header.Get("Content-Type"), Body: body}, nil
}

// plain returns what went wrong in a request, with the address but without the rest of the URL.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return fmt.Errorf("%s: %w", u.URL, u.Err)
	}
	return err
}
