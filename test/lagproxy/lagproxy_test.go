package lagproxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

// events is a server with one watch: each value of the channel is an event.
func events(t *testing.T, send <-chan string) *Proxy {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			_, _ = fmt.Fprint(w, "a list")
			return
		}
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case event := <-send:
				_, _ = fmt.Fprintln(w, event)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	p, err := Start(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	return p
}

// get requests a path, and returns the body, which is closed at the end of the test.
func get(t *testing.T, p *Proxy, path string) *bufio.Reader {
	t.Helper()
	response, err := http.Get(p.Config().Host + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return bufio.NewReader(response.Body)
}

func line(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	text, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestHeldEventsArriveAfterTheRelease(t *testing.T) {
	send := make(chan string)
	p := events(t, send)
	pods := get(t, p, "/api/v1/pods?watch=true")
	send <- "one"
	if got := line(t, pods); got != "one\n" {
		t.Fatalf("got %q, want the event", got)
	}
	p.Hold("pods")
	send <- "two"
	arrived := make(chan string, 1)
	go func() {
		text, _ := pods.ReadString('\n') // an error shows as another text
		arrived <- text
	}()
	// Another request passes meanwhile, and the event has not.
	if got, err := io.ReadAll(get(t, p, "/api/v1/pods")); err != nil || string(got) != "a list" {
		t.Fatalf("a list = %q, %v", got, err)
	}
	select {
	case got := <-arrived:
		t.Fatalf("the event %q arrived, want it held back", got)
	default:
	}
	p.Release()
	if got := <-arrived; got != "two\n" {
		t.Errorf("got %q, want the event that was held back", got)
	}
}

func TestOtherResourcesAreNotHeld(t *testing.T) {
	send := make(chan string)
	p := events(t, send)
	p.Hold("services")
	pods := get(t, p, "/api/v1/pods?watch=true")
	send <- "one"
	if got := line(t, pods); got != "one\n" {
		t.Errorf("got %q, want the event", got)
	}
}

func TestCloseEndsHeldWatches(t *testing.T) {
	send := make(chan string)
	p := events(t, send)
	p.Hold("pods")
	get(t, p, "/api/v1/pods?watch=true")
	send <- "one"
}
