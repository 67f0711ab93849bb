package verify

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// question is the used part of a webhook's request.
type question struct {
	Parent struct {
		Metadata struct{ Name string }
		Spec     map[string]any
		Status   map[string]any
	}
	Children   map[string]map[string]map[string]any
	Finalizing bool
}

// serveAnswers serves a webhook that answers by a function, which returns status and children.
func serveAnswers(t *testing.T, answer func(question) (any, []any)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q question
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		status, children := answer(q)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "children": children, "finalized": true})
	}))
	t.Cleanup(server.Close)
	return server.URL + "/sync"
}

func configMap(name string, data map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": data,
	}
}

// demos is a controller that writes changes of its children.
var demos = edited(declaring, "    resource: configmaps\n", `    resource: configmaps
    updateStrategy:
      method: InPlace
`)

// TestPurity plants the faults of an answer that is no function of the question.
func TestPurity(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	for _, test := range []struct {
		name, want string
		answer     func(question) (any, []any)
	}{
		{"good", "", func(q question) (any, []any) {
			return map[string]any{"children": len(q.Children["ConfigMap.v1"])}, []any{configMap("a", nil), configMap("b", nil)}
		}},
		{"order of the children", "", func(question) (any, []any) {
			if calls.Add(1)%2 == 0 {
				return nil, []any{configMap("a", nil), configMap("b", nil)}
			}
			return nil, []any{configMap("b", nil), configMap("a", nil)}
		}},
		{"random", ruleRepeat, func(question) (any, []any) {
			return nil, []any{configMap("a", map[string]any{"n": fmt.Sprint(calls.Add(1))})}
		}},
		{"nanoseconds", ruleClock, func(question) (any, []any) {
			return nil, []any{configMap("a", map[string]any{"t": time.Now().Format(time.RFC3339Nano)})}
		}},
		{"seconds", ruleClock, func(question) (any, []any) {
			return map[string]any{"at": time.Now().Unix()}, nil
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			url := serveAnswers(t, test.answer)
			o := Options{Addresses: both(url), Files: []string{file(t, demos)}, Version: "v2"}
			expectOnly(t, verify(t, o), test.want)
		})
	}
}

// expectOnly expects faults of one rule, or none, with a request that is smaller than the question.
func expectOnly(t *testing.T, r *Report, want string) {
	t.Helper()
	got := ids(r, Fault)
	if want == "" {
		if len(got) > 0 {
			t.Errorf("got faults %v, want none:\n%s", got, text(t, r))
		}
		return
	}
	if len(got) != 1 || got[0] != want {
		t.Fatalf("got faults %v, want %s:\n%s", got, want, text(t, r))
	}
	f := finding(t, r, want)
	if !f.Shrunk || !json.Valid(f.Request) || strings.Contains(string(f.Request), "replicas") ||
		strings.Contains(string(f.Request), "childResources") {
		t.Errorf("the request is not shrunk:\n%s", text(t, r))
	}
}

// TestFixedPoint plants answers that never equal the observed state.
func TestFixedPoint(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, want string
		answer     func(question) (any, []any)
	}{
		{"one child after the other", "", func(q question) (any, []any) {
			all := []any{}
			for i := range min(len(q.Children["ConfigMap.v1"])+1, 5) {
				all = append(all, configMap(fmt.Sprintf("c%d", i), nil))
			}
			return nil, all
		}},
		{"a counter in the status", ruleFixedPoint, func(q question) (any, []any) {
			n, _ := q.Parent.Status["syncs"].(float64)
			return map[string]any{"syncs": n + 1}, nil
		}},
		{"a child that toggles", ruleFixedPoint, func(q question) (any, []any) {
			value := "on"
			for _, observed := range q.Children["ConfigMap.v1"] {
				if data, _ := observed["data"].(map[string]any); data["switch"] == "on" {
					value = "off"
				}
			}
			return nil, []any{configMap("a", map[string]any{"switch": value})}
		}},
		{"the observed child, to keep it", "", func(q question) (any, []any) {
			for _, observed := range q.Children["ConfigMap.v1"] {
				return nil, []any{observed}
			}
			return nil, []any{configMap("a", map[string]any{"k": "v"})}
		}},
		{"the observed child with a change", ruleEcho, func(q question) (any, []any) {
			for _, observed := range q.Children["ConfigMap.v1"] {
				observed["data"] = map[string]any{"k": "v"}
				return nil, []any{observed}
			}
			return nil, []any{configMap("a", map[string]any{"k": "v"})}
		}},
		{"a child that is invalid", ruleRefused, func(question) (any, []any) {
			return nil, []any{configMap("a", map[string]any{"k": map[string]any{}})}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := Options{Addresses: both(serveAnswers(t, test.answer)), Files: []string{file(t, demos)}, Version: "v2"}
			report := verify(t, o)
			if test.want == ruleRefused {
				finding(t, report, ruleRefused)
				return
			}
			expectOnly(t, report, test.want)
		})
	}
}
