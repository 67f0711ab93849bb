package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestLinks finds the section of each link of the page, and each service of the contract.
func TestLinks(t *testing.T) {
	data, err := os.ReadFile("../../../docs/reference/grpc.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	sections := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^### (.+)$`).FindAllStringSubmatch(text, -1) {
		anchor := strings.ToLower(strings.ReplaceAll(heading[1], ".", ""))
		if sections[anchor] {
			t.Errorf("there are two sections %s", heading[1])
		}
		sections[anchor] = true
	}
	links := regexp.MustCompile(`\]\(#([^)]+)\)`).FindAllStringSubmatch(text, -1)
	if len(links) < 100 {
		t.Errorf("the page has %d links, want those of all fields", len(links))
	}
	for _, link := range links {
		if !sections[link[1]] {
			t.Errorf("there is no section #%s", link[1])
		}
	}
	for _, service := range []string{"CompositeHook", "DecoratorHook", "MapHook", "HookStream", "Gateway"} {
		if !regexp.MustCompile(`(?m)^### [a-z]+\.v1\.` + service + `Service$`).MatchString(text) {
			t.Errorf("there is no section of %sService", service)
		}
	}
}
