package pipeline

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

// TestSyncSink: each message has the sync's values and the caller's place, at the levels of the
// base; the values are made for messages alone.
func TestSyncSink(t *testing.T) {
	var lines []string
	base := funcr.New(func(prefix, args string) { lines = append(lines, prefix+"|"+args) },
		funcr.Options{Verbosity: 1, LogCaller: funcr.All})
	made := 0
	log := logr.New(&syncSink{base: base.WithValues("controller", "c"), values: func() []any {
		made++
		return []any{"parent", "shop/web"}
	}})
	log.V(2).Info("not written")
	if made > 0 {
		t.Errorf("the values were made %d times for no message", made)
	}
	_, _, at, _ := runtime.Caller(0)
	log.Info("one", "a", 1)
	log.V(1).Info("two")
	log.Error(errors.New("broken"), "three")
	log.WithValues("more", true).Info("four")
	log.WithName("named").Info("five")
	caller := func(n int) string { return fmt.Sprintf(`"caller"={"file"="logger_test.go" "line"=%d}`, at+n) }
	want := []string{
		`|` + caller(1) + ` "level"=0 "msg"="one" "controller"="c" "parent"="shop/web" "a"=1`,
		`|` + caller(2) + ` "level"=1 "msg"="two" "controller"="c" "parent"="shop/web"`,
		`|` + caller(3) + ` "msg"="three" "error"="broken" "controller"="c" "parent"="shop/web"`,
		`|` + caller(4) + ` "level"=0 "msg"="four" "controller"="c" "parent"="shop/web" "more"=true`,
		`named|` + caller(5) + ` "level"=0 "msg"="five" "controller"="c" "parent"="shop/web"`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
