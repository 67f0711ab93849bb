package webhook

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestUserOfTheURL: a user and a password in the URL are sent as credentials, with each request.
func TestUserOfTheURL(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != "user" || password != "secret" {
			http.Error(w, "who?", http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte(`{}`))
	}))
	defer server.Close()
	opened, err := Open(settings("v1", string(field(strings.Replace(server.URL, "//", "//user:secret@", 1), ""))))
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close() //nolint:errcheck // it has no error
	for range 2 {
		if _, err := opened.Ask(t.Context(), observed(t)); err != nil {
			t.Error(err)
		}
	}
}
