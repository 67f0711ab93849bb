package actor

import (
	"errors"
	"strings"
	"testing"
)

func TestFindCircle(t *testing.T) {
	for name, c := range map[string]struct{ graph, from, want string }{
		"no edges":                  {"", "a", ""},
		"a chain":                   {"a:b b:c", "a", ""},
		"a diamond":                 {"a:bc b:d c:d", "a", ""},
		"itself":                    {"a:a", "a", "aa"},
		"two":                       {"a:b b:a", "a", "aba"},
		"behind a chain":            {"a:b b:c c:d d:b", "a", "bcdb"},
		"beside a chain":            {"a:bc b:d c:a", "a", "aca"},
		"reached from another node": {"x:y a:b b:a", "xa", "aba"},
		"not reached":               {"x:y a:b b:a", "x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := findCircle(strings.Split(c.from, ""), 10, edges(c.graph))
			if err != nil || strings.Join(got, "") != c.want {
				t.Errorf("findCircle = %v, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestFindCircleIsBounded(t *testing.T) {
	endless := func(n int) ([]int, error) { return []int{n + 1}, nil }
	if _, err := findCircle([]int{0}, 50, endless); !errors.Is(err, errTooLarge) {
		t.Errorf("error = %v, want %v", err, errTooLarge)
	}
	broken := errors.New("broken")
	if _, err := findCircle([]int{0}, 50, func(int) ([]int, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("error = %v, want %v", err, broken)
	}
}

// edges reads a graph such as "a:bc b:c".
func edges(graph string) func(string) ([]string, error) {
	next := map[string][]string{}
	for _, edge := range strings.Fields(graph) {
		from, to, _ := strings.Cut(edge, ":")
		next[from] = strings.Split(to, "")
	}
	return func(node string) ([]string, error) { return next[node], nil }
}
