package server

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-logr/logr"
)

// TestGRPCLog logs as gRPC does: its errors are lines of the engine's log, and the rest is not
// logged at the default level.
func TestGRPCLog(t *testing.T) {
	var out bytes.Buffer
	log, err := Log{}.logger(&out)
	if err != nil {
		t.Fatal(err)
	}
	g := grpcLog{func() logr.Logger { return log }}
	g.Infof("info %d", 1)
	g.Warningln("a warning")
	g.Errorf("error %d", 2)
	g.Errorln("error", 3)
	var got []string
	for line := range strings.Lines(out.String()) {
		var r struct{ Level, Msg, Err string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q is no JSON: %v", line, err)
		}
		got = append(got, r.Level+" "+r.Msg+": "+r.Err)
	}
	want := "error gRPC reports an error: error 2\nerror gRPC reports an error: error 3"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if g.V(2) {
		t.Error("gRPC prepares verbose lines that are not logged")
	}
}
