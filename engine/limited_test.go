package engine

import (
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestNoLimitOfRequests has 0 mean no limit, although client-go takes it as 5 requests per second.
func TestNoLimitOfRequests(t *testing.T) {
	waited := func(string, time.Duration) {}
	for _, qps := range []float64{0, -1} {
		c := limited(&Config{Rest: &rest.Config{}, ClientQPS: qps}, waited)
		if c.QPS != -1 || c.RateLimiter != nil {
			t.Errorf("ClientQPS %v gives QPS %v and the limiter %v, want -1 and none", qps, c.QPS, c.RateLimiter)
		}
	}
	c := limited(&Config{Rest: &rest.Config{}, ClientQPS: 200, ClientBurst: 400}, waited)
	if c.QPS != 200 || c.Burst != 400 || c.RateLimiter == nil {
		t.Errorf("ClientQPS 200 gives %+v, want this limit in one limiter", c)
	}
}
