package server

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// health answers the probes: /healthz while the process lives, /readyz while it works or waits to
// lead. The zero value is not ready. It is safe for concurrent use.
type health struct {
	check atomic.Pointer[func() (ready bool, why string)]
}

// set sets the check of /readyz.
func (h *health) set(check func() (ready bool, why string)) { h.check.Store(&check) }

// standby makes a replica that waits to lead ready at once, so that a rollout of several replicas
// can continue.
func (h *health) standby() {
	h.set(func() (bool, string) { return true, "standing by for leadership" })
}

// warming makes a replica that waits to lead ready when its caches are filled. A rollout then stops
// the old leader only when a replica is there that can take over without listing everything.
func (h *health) warming(e runner) {
	h.set(func() (bool, string) {
		if !e.Warmed() {
			return false, "standing by for leadership; caches are being filled"
		}
		return true, "standing by for leadership; caches are filled"
	})
}

// stopping makes the process unready.
func (h *health) stopping() { h.set(func() (bool, string) { return false, "stopping" }) }

// working makes the process ready when the engine is ready. The answer lists the engine's problems,
// but they do not make the process unready, because a restart would not solve them.
func (h *health) working(e runner) {
	h.set(func() (bool, string) {
		if !e.Ready() {
			return false, "caches are being filled"
		}
		return true, strings.Join(append([]string{"ok"}, e.Problems()...), "\n")
	})
}

func (h *health) ready() (ready bool, why string) {
	if check := h.check.Load(); check != nil {
		return (*check)()
	}
	return false, "starting"
}

func (h *health) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, true, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		ready, why := h.ready()
		answer(w, ready, why)
	})
	return mux
}

func answer(w http.ResponseWriter, ok bool, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = io.WriteString(w, text+"\n") // the prober may have disconnected
}
