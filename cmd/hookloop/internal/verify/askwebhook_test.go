package verify

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

// TestSwitchingProtocols: a hook that answers with another protocol, and then with nothing, does
// not hold the examination.
func TestSwitchingProtocols(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = connection.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"))
		<-ended
		_ = connection.Close()
	}))
	defer server.Close()
	defer close(ended)
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}`
	o, err := object.Decode([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	client := &webhookClient{
		target: &target{timeout: time.Second, version: "v1"}, url: server.URL, http: server.Client(),
	}
	replies := make(chan *reply, 1)
	go func() {
		replies <- client.ask(t.Context(), &hook.Question{Kind: hook.Composite, Op: hook.Sync, Controller: o, Parent: o})
	}()
	select {
	case r := <-replies:
		if r.failure == nil {
			t.Errorf("the reply is %+v, want a failure", r)
		}
	case <-time.After(time.Minute):
		t.Fatal("the call has not ended")
	}
}
