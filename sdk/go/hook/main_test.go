package hook_test

import (
	"flag"
	"testing"

	"github.com/hookloop/hookloop/sdk/go/hook"
)

// TestFlagsAndVariables reads the same names for listening and for dialling in.
func TestFlagsAndVariables(t *testing.T) {
	t.Setenv("HOOKLOOP_HOOK_BUILD_ID", "b1")
	t.Setenv("HOOKLOOP_HOOK_CLIENT_CA", "ca.pem")
	t.Setenv("HOOKLOOP_HOOK_ATTACH", "gateway:1")
	t.Setenv("HOOKLOOP_HOOK_TOKEN_FILE", "variable")
	o := hook.ServeOptions{}
	g := hook.Gateway{}
	fs := flag.NewFlagSet("hook", flag.ContinueOnError)
	o.AddFlags(fs)
	g.AddFlags(fs)
	if g.TokenFile != "variable" || o.TokenFile != "variable" {
		t.Errorf("got the files %q and %q of tokens, want those of the variable", o.TokenFile, g.TokenFile)
	}
	if err := fs.Parse([]string{"--client-name", "engine", "--token-file", "flag"}); err != nil {
		t.Fatal(err)
	}
	want := hook.ServeOptions{
		Listen:     hook.DefaultListen,
		Options:    hook.Options{BuildID: "b1"},
		ClientCA:   "ca.pem",
		ClientName: "engine",
		TokenFile:  "flag",
	}
	if o.BuildID != want.BuildID || o.Listen != want.Listen || o.ClientCA != want.ClientCA ||
		o.ClientName != want.ClientName ||
		o.TokenFile != want.TokenFile {
		t.Errorf("got %+v, want %+v", o, want)
	}
	if g.Address != "gateway:1" || g.TokenFile != "flag" {
		t.Errorf("got %+v", g)
	}
}
