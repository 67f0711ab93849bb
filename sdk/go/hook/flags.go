package hook

import (
	"flag"
	"os"
	"strings"
)

// Serve and Attach both register these flags.
const (
	tokenUsage = "file with the tokens of callers, one in each line; " +
		"with --attach, with the token that is sent to the gateway"
	buildUsage = "name of the hook's build; empty means a hash of the program"
)

// flags registers flags that default to environment variables: --listen to HOOKLOOP_HOOK_LISTEN.
type flags struct{ *flag.FlagSet }

// text registers a flag. If the flag is already registered, it sets both variables.
func (f flags) text(p *string, name, otherwise, usage string) {
	if known := f.Lookup(name); known != nil {
		*p = known.DefValue
		known.Value = both{known.Value, p}
		return
	}
	f.StringVar(p, name, fromEnv(name, otherwise), usage)
}

// fromEnv returns a flag's default from the environment.
func fromEnv(name, otherwise string) string {
	if value := os.Getenv("HOOKLOOP_HOOK_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))); value != "" {
		return value
	}
	return otherwise
}

// both sets two variables from one flag.
type both struct {
	flag.Value
	also *string
}

// Set implements flag.Value.
func (b both) Set(text string) error {
	*b.also = text
	return b.Value.Set(text)
}
