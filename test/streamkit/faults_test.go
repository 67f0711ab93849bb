package streamkit

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// faults has, for each planted fault, dialogues that must fail.
var faults = map[string][]string{
	"big_endian_digests":                {"snapshot", "resume"},
	"list_digest_without_order":         {"snapshot", "desired-pieces"},
	"slots_are_big_endian":              {"snapshot", "change"},
	"removed_is_ignored":                {"change"},
	"digests_are_not_checked":           {"wrong-digest"},
	"bases_are_not_checked":             {"unknown-base"},
	"state_survives_forget":             {"forget"},
	"state_survives_nack":               {"unknown-base", "wrong-digest"},
	"state_survives_without_resume":     {"no-resume"},
	"state_is_lost_with_the_stream":     {"resume", "resume-open-call"},
	"cancelled_calls_have_no_answer":    {"cancel"},
	"cancelled_calls_have_two_answers":  {"cancel"},
	"timeouts_are_ignored":              {"timeout"},
	"old_ids_are_served":                {"old-id"},
	"large_answers_are_one_piece":       {"fragments-out"},
	"fragments_are_not_checked":         {"fragment-faults"},
	"unknown_capabilities_are_an_error": {"unknown-values"},
	"any_version_is_accepted":           {"versions"},
	"answers_are_always_whole":          {"desired-pieces"},
	"answers_refer_to_any_list":         {"desired-digest"},
	"integers_are_doubles":              {"numbers"},
	"errors_have_no_details":            {"errors"},
	"drain_is_ignored":                  {"handshake", "drain"},
}

// TestPlantedFaultsFail plays dialogues with hooks that have one fault each. The dialogues for the
// fault fail, and "handshake" passes unless it is one of them, so that the fault is the reason.
func TestPlantedFaultsFail(t *testing.T) {
	source, err := os.ReadFile(hookFile("faulty.py"))
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`(?m)^def (\w+)\(\):$`).FindAllStringSubmatch(string(source), -1) {
		if faults[match[1]] == nil {
			t.Errorf("no dialogue is known to find the fault %s", match[1])
		}
	}
	for fault, dialogues := range faults {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			spec := python(t)
			spec.Args = []string{hookFile("faulty.py"), fault}
			address := listening(t, start(t, spec, "--listen", "127.0.0.1:0"))
			played := verifyStream(t, nil, "--hook", address, "--wait", "5s",
				"--only", strings.Join(append(slices.Clone(dialogues), "handshake"), ","))
			want := map[string]string{"handshake": passed}
			for _, name := range dialogues {
				want[name] = failed
			}
			if diff := cmp.Diff(want, played.outcomes); diff != "" {
				t.Errorf("outcomes of the dialogues (-want +got):\n%s\n%s", diff, played.output)
			}
			t.Log("\n" + played.output)
			if played.exitCode != 1 {
				t.Errorf("the exit code is %d, want 1 because dialogues fail", played.exitCode)
			}
		})
	}
}
