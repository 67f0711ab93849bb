package main

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hookloop/hookloop/test/serve"
)

// transport is a way from the engine to the hook.
type transport string

const (
	webhook transport = "webhook"
	unary   transport = "unary"
	stream  transport = "stream"
	// bare is the webhook again, asked by a client without an engine.
	bare transport = "bare client"
)

// options holds the measurements to make.
type options struct {
	transports []transport
	// children are the sizes of the drift workload; parents is that of the converge workload, 0 for
	// none.
	children []int
	parents  int
	// inputs are the sizes of the workload of a MapController.
	inputs []int
	// scale measures parents with perLarge children each, and nothing else.
	scale bool
	// rounds is the number of edited children, and idle the number of touches of the parent with many
	// children.
	rounds, idle int
	// bytes is the length of a child's data.
	bytes int
	json  bool
	// gzip reports that the webhook accepts compressed requests.
	gzip bool
	// profile is a folder for CPU profiles of the engine; empty for none.
	profile string
	// hook and bare are the paths of the programs of the hook and of the bare client.
	hook, bare string
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	transports := flags.String("transports", "webhook,unary,stream", "ways to the hook")
	children := flags.String("children", "1000,3000",
		"numbers of children of one parent, each measured on its own; empty for none")
	inputs := flags.String("inputs", "100,10000",
		"numbers of inputs of one parent of a MapController, each measured on its own; empty for none")
	flags.IntVar(&o.parents, "parents", 300, "parents with 3 children that appear together; 0 for none")
	flags.BoolVar(&o.scale, "scale", false, fmt.Sprintf(
		"measure only -parents (%d) parents with %d children each, by webhook unless -transports names others: "+
			"events at several sizes, memory, a restart, and a failover", scaleParents, perLarge))
	flags.IntVar(&o.rounds, "rounds", 30, "children that are edited, one after the other")
	flags.IntVar(&o.idle, "idle", 10, "syncs without an effect of the parent with many children")
	flags.IntVar(&o.bytes, "bytes", 900, "length of a child's data")
	flags.BoolVar(&o.gzip, "gzip", false, "the webhook accepts requests that are compressed by gzip")
	flags.BoolVar(&o.json, "json", false, "print JSON instead of tables")
	flags.StringVar(&o.profile, "profile", "",
		"folder for CPU profiles: of the engine under each workload, taken after the measurement, and of the hook")
	flags.StringVar(&o.hook, "hook", serve.Program("bench-hook"), "the hook's program")
	flags.StringVar(&o.bare, "bare", serve.Program("bench-bare"), "the bare client's program")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q; expected flags only", flags.Arg(0))
	}
	if o.scale {
		o.onlyScale(flags, transports)
		*children = ""
		*inputs = ""
	}
	var err error
	o.transports, err = parseTransports(*transports)
	if err != nil {
		return o, err
	}
	o.children, err = parseSizes("children", *children)
	if err != nil {
		return o, err
	}
	o.inputs, err = parseSizes("inputs", *inputs)
	if err != nil {
		return o, err
	}
	return o, o.check()
}

// scaleParents is the default of -parents with -scale.
const scaleParents = 10_000

// onlyScale replaces the defaults by those of -scale.
func (o *options) onlyScale(flags *flag.FlagSet, transports *string) {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if !given["parents"] {
		o.parents = scaleParents
	}
	if !given["transports"] {
		*transports = string(webhook)
	}
}

func parseTransports(list string) ([]transport, error) {
	known := []transport{webhook, unary, stream}
	var all []transport
	for name := range strings.SplitSeq(list, ",") {
		if !slices.Contains(known, transport(name)) {
			return nil, fmt.Errorf("-transports: %q; expected a list of webhook, unary and stream", name)
		}
		all = append(all, transport(name))
	}
	return all, nil
}

func parseSizes(name, list string) ([]int, error) {
	if list == "" {
		return nil, nil
	}
	var all []int
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-%s: %q; expected a list of numbers above 0", name, text)
		}
		all = append(all, n)
	}
	return all, nil
}

func (o options) check() error {
	if o.scale && o.parents < 2*perTheme {
		return fmt.Errorf("-parents: %d; expected %d or more with -scale", o.parents, 2*perTheme)
	}
	for _, n := range []struct {
		name       string
		value, min int
	}{{"parents", o.parents, 0}, {"rounds", o.rounds, 1}, {"idle", o.idle, 1}, {"bytes", o.bytes, 0}} {
		if n.value < n.min {
			return fmt.Errorf("-%s: %d; expected %d or more", n.name, n.value, n.min)
		}
	}
	return nil
}
