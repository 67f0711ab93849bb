package footprint

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// TestDropProgramPages drops the pages of the test's program, which then continues.
func TestDropProgramPages(t *testing.T) {
	before := resident(t)
	if err := dropProgramPages(); err != nil {
		t.Fatal(err)
	}
	if after := resident(t); after >= before {
		t.Errorf("%d kB of files are resident, %d kB before", after, before)
	}
}

var rssFile = regexp.MustCompile(`RssFile:\s*(\d+) kB`)

func resident(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	found := rssFile.FindSubmatch(status)
	if found == nil {
		t.Fatalf("no RssFile in %s", status)
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestParseMapping(t *testing.T) {
	for line, want := range map[string]mapping{
		"00400000-02360000 r-xp 00000000 fe:00 42                         /bin/hook loop": {
			0x400000, 0x2360000, true, "/bin/hook loop",
		},
		"047e2000-048a6000 rw-p 043e2000 fe:00 42 /bin/hookloop": {0x47e2000, 0x48a6000, false, "/bin/hookloop"},
		"7ffd8a9d5000-7ffd8a9f6000 rw-p 00000000 00:00 0         [stack]": {
			0x7ffd8a9d5000, 0x7ffd8a9f6000, false, "",
		},
	} {
		if m, ok := parseMapping(line); !ok || m != want {
			t.Errorf("%q is %+v, %v, want %+v", line, m, ok, want)
		}
	}
	if _, ok := parseMapping("none"); ok {
		t.Error("a line that is none is read")
	}
}
