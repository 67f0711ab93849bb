package main

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hookloop/hookloop/test/cluster"
)

// options are the flags.
type options struct {
	programs []program
	// sites is the number of Websites that appear together, few that of those that a fault concerns,
	// and objects the number of Websites and children among which the memory is read.
	sites, few, objects int
	// lag is the time that events are held back.
	lag  time.Duration
	json bool
	// bin is the folder of the programs.
	bin string
}

func parse(args []string) (options, error) {
	var o options
	var all []string
	for _, p := range programs {
		all = append(all, p.name)
	}
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	list := flags.String("programs", strings.Join(all, ","), "programs to compare")
	flags.IntVar(&o.sites, "sites", 300, "Websites that appear together")
	flags.IntVar(&o.few, "few", 20, "Websites that a fault concerns")
	flags.IntVar(&o.objects, "objects", 5000, "Websites and children among which the memory is read")
	flags.DurationVar(&o.lag, "lag", 3*time.Second, "time that events are held back")
	flags.BoolVar(&o.json, "json", false, "print JSON instead of tables")
	flags.StringVar(&o.bin, "bin", filepath.Join(cluster.Root(), ".cache", "bin"), "folder of the programs")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q; expected flags only", flags.Arg(0))
	}
	if o.sites < 1 || o.few < 3 {
		return o, fmt.Errorf("-sites %d, -few %d; expected 1 and 3 or more", o.sites, o.few)
	}
	for name := range strings.SplitSeq(*list, ",") {
		i := slices.Index(all, name)
		if i < 0 {
			return o, fmt.Errorf("-programs: %q; expected a list of %s", name, strings.Join(all, ", "))
		}
		o.programs = append(o.programs, programs[i])
	}
	return o, nil
}
