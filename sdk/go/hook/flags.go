package hook

import (
	"flag"
	"os"
	"strings"
)

// The usage of flags that Serve and Attach share.
const (
	tokenUsage = "file with the tokens of callers, one in each line; " +
		"with --attach, with the token that is sent to the gateway"
	buildUsage = "name of the hook's build; empty means a hash of the program"
)

// flags registers flags with environment variables as defaults: HOOKLOOP_HOOK_LISTEN for --listen.
type flags struct{ *flag.FlagSet }

// text registers a flag. If the flag exists, it sets both variables.
func (f flags) text(p *string, name, otherwise, usage string) {
	if known := f.Lookup(name); known != nil {
		*p = known.DefValue
		known.Value = both{known.Value, p}
		return
	}
	f.StringVar(p, name, fromEnv(name, otherwise), usage)
}

// fromEnv returns the default of a flag.
func fromEnv(name, otherwise string) string {
	if value := os.Getenv("HOOKLOOP_HOOK_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))); value != "" {
		return value
	}
	return otherwise
}

// both is the value of a flag that sets a second variable.
type both struct {
	flag.Value
	also *string
}

// Set sets both variables.
func (b both) Set(text string) error {
	*b.also = text
	return b.Value.Set(text)
}
