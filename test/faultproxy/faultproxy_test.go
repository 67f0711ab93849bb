package faultproxy_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/hookloop/hookloop/test/faultproxy"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestFaults sends many requests through a proxy. Each fault has its share, the server carries out
// a request with a lost answer, and requests that no fault matches succeed.
func TestFaults(t *testing.T) {
	var carried atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { carried.Add(1) }))
	defer target.Close()
	p, err := faultproxy.Start(&rest.Config{Host: target.URL}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	send := func(method string) int {
		request, err := http.NewRequestWithContext(t.Context(), method, p.Config().Host+"/api", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return response.StatusCode
	}
	if code := send(http.MethodPut); code != http.StatusOK {
		t.Fatalf("without faults the answer is %d", code)
	}
	p.Take()
	carried.Store(0)
	puts := func(r *http.Request) bool { return r.Method == http.MethodPut }
	p.Set(
		faultproxy.Fault{
			Share:   .2,
			Code:    http.StatusTooManyRequests,
			Reason:  metav1.StatusReasonTooManyRequests,
			Matches: puts,
		},
		faultproxy.Fault{
			Share:   .1,
			Code:    http.StatusGatewayTimeout,
			Reason:  metav1.StatusReasonTimeout,
			Matches: puts,
			Lost:    true,
		},
	)
	const n = 1000
	for range n {
		send(http.MethodPut)
	}
	count := p.Take()
	if got := count.Failed[http.StatusTooManyRequests]; count.Requests != n || got < n/8 || got > n/3 {
		t.Errorf("%d of %d requests got 429, want about %d", got, count.Requests, n/5)
	}
	if got := int(carried.Load()); got != n-count.Failed[http.StatusTooManyRequests] ||
		count.Failed[http.StatusGatewayTimeout] == 0 {
		t.Errorf("%d of %d requests were carried out; failed are %v", got, n, count.Failed)
	}
	for range 100 {
		if code := send(http.MethodGet); code != http.StatusOK {
			t.Fatalf("what no fault matches gets %d", code)
		}
	}
}
