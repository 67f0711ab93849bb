package graph

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Style is the text about the nodes of a tree.
type Style struct {
	// Line is the end of a node's line.
	Line func(n Node) string
	// Below are lines below the line of the node with this index.
	Below func(n Node, index int) []string
}

// Text draws the graph as a tree of owners. An object that depends on others names them behind
// "waits for"; the conditions that are not True are below their object, with reason and message.
func (g *Graph) Text() string {
	return g.Tree(Style{Line: state, Below: func(n Node, _ int) []string { return NotTrue(n) }})
}

// Tree draws the graph as a tree of owners in a style.
func (g *Graph) Tree(style Style) string {
	var b strings.Builder
	t := text{graph: g, out: &b, drawn: map[int]bool{}, style: style}
	t.draw(0, "", "")
	for i := range g.Nodes {
		if !t.drawn[i] && !t.owned(i) {
			t.draw(i, "", "")
		}
	}
	for i := range g.Nodes { // a circle of owners has no first one
		if !t.drawn[i] {
			t.draw(i, "", "")
		}
	}
	g.unknown(&b)
	if g.Truncated {
		fmt.Fprintf(&b, "there are more objects: the limit is %d\n", len(g.Nodes))
	}
	return b.String()
}

// NotTrue returns the conditions of a node that are not True, one line each.
func NotTrue(n Node) []string {
	var lines []string
	for _, c := range n.Conditions {
		if c.Status != metav1.ConditionTrue {
			lines = append(lines, Describe(c))
		}
	}
	return lines
}

// unknown names the resources that could not be read, on one line for each reason.
func (g *Graph) unknown(b *strings.Builder) {
	resources := map[string][]string{}
	for _, u := range g.Unknown {
		resources[u.Reason] = append(resources[u.Reason], u.Resource)
	}
	for _, reason := range slices.Sorted(maps.Keys(resources)) {
		names := slices.Compact(slices.Sorted(slices.Values(resources[reason])))
		fmt.Fprintf(b, "not read, because of %q: objects of %s\n",
			clean(reason), strings.Join(names, ", "))
	}
}

// text draws one tree.
type text struct {
	graph *Graph
	out   *strings.Builder
	drawn map[int]bool
	style Style
}

// draw draws a node and what it owns. An object with several owners is drawn once with what it
// owns, and named below the others.
func (t *text) draw(i int, knot, below string) {
	n := t.graph.Nodes[i]
	again := t.drawn[i]
	t.drawn[i] = true
	line := knot + n.label(t.graph.Nodes[0]) + t.style.Line(n)
	if names := t.graph.names(i, DependsOn); len(names) > 0 {
		line += "  waits for " + strings.Join(names, ", ")
	}
	fmt.Fprintln(t.out, line)
	owned := t.graph.targets(i, Owns)
	if again {
		owned = nil
	}
	bar := "  "
	if len(owned) > 0 {
		bar = "│ "
	}
	if !again {
		for _, line := range t.style.Below(n, i) {
			fmt.Fprintf(t.out, "%s%s  %s\n", below, bar, line)
		}
	}
	for k, child := range owned {
		if k == len(owned)-1 {
			t.draw(child, below+"└─ ", below+"   ")
			continue
		}
		t.draw(child, below+"├─ ", below+"│  ")
	}
}

// owned reports whether a node of the graph owns node i.
func (t *text) owned(i int) bool {
	for _, e := range t.graph.Edges {
		if e.Kind == Owns && e.To == i {
			return true
		}
	}
	return false
}

// targets returns the ends of the edges of one kind that begin at node i.
func (g *Graph) targets(i int, kind EdgeKind) []int {
	var all []int
	for _, e := range g.Edges {
		if e.From == i && e.Kind == kind {
			all = append(all, e.To)
		}
	}
	return all
}

func (g *Graph) names(i int, kind EdgeKind) []string {
	var all []string
	for _, to := range g.targets(i, kind) {
		all = append(all, g.Nodes[to].label(g.Nodes[0]))
	}
	return all
}

// state is the end of a node's line: the state of its object.
func state(n Node) string {
	switch {
	case n.Missing:
		return "  does not exist"
	case n.Deleting:
		return "  is being deleted"
	case n.Ready() != "":
		return "  Ready=" + string(n.Ready())
	}
	return ""
}

// Describe returns one line about a condition.
func Describe(c metav1.Condition) string {
	line := c.Type + "=" + string(c.Status)
	if c.Reason != "" {
		line += " " + c.Reason
	}
	if c.Message != "" {
		line += ": " + c.Message
	}
	return line
}

// Mermaid draws the graph as a Mermaid flowchart. Solid arrows lead from owner to owned object,
// dotted ones from an object to those that it waits for.
func (g *Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for i, n := range g.Nodes {
		fmt.Fprintf(&b, "  n%d[\"%s\"]%s\n", i, strings.Join(escaped(g.caption(n)), "<br/>"), class(n))
	}
	for _, e := range g.Edges {
		arrow := "-->"
		if e.Kind == DependsOn {
			arrow = "-. waits for .->"
		}
		fmt.Fprintf(&b, "  n%d %s n%d\n", e.From, arrow, e.To)
	}
	b.WriteString("  classDef ready stroke:#2a2\n  classDef waiting stroke:#c60\n  classDef missing stroke-dasharray:4\n")
	return b.String()
}

// class is the style of a node in Mermaid.
func class(n Node) string {
	switch {
	case n.Missing:
		return ":::missing"
	case n.Ready() == metav1.ConditionTrue:
		return ":::ready"
	case n.Ready() != "":
		return ":::waiting"
	}
	return ""
}

// DOT draws the graph in the language of Graphviz. The arrows are those of Mermaid.
func (g *Graph) DOT() string {
	var b strings.Builder
	b.WriteString("digraph objects {\n  node [shape=box]\n")
	for i, n := range g.Nodes {
		style := ""
		if n.Missing {
			style = ", style=dashed"
		}
		fmt.Fprintf(&b, "  n%d [label=%s%s]\n", i, strconv.Quote(strings.Join(g.caption(n), "\n")), style)
	}
	for _, e := range g.Edges {
		style := ""
		if e.Kind == DependsOn {
			style = ` [style=dashed, label="waits for"]`
		}
		fmt.Fprintf(&b, "  n%d -> n%d%s\n", e.From, e.To, style)
	}
	b.WriteString("}\n")
	return b.String()
}

// entities are Mermaid's for the characters that have a meaning in its labels.
var entities = strings.NewReplacer(`"`, "#quot;", "<", "#lt;", ">", "#gt;", "#", "#35;")

func escaped(lines []string) []string {
	for i := range lines {
		lines[i] = entities.Replace(lines[i])
	}
	return lines
}

// caption is the lines of a node's text: kind, name, state, and the conditions that are not True.
func (g *Graph) caption(n Node) []string {
	parts := []string{n.label(g.Nodes[0])}
	if s := strings.TrimSpace(state(n)); s != "" {
		parts = append(parts, s)
	}
	for _, c := range n.Conditions {
		if c.Status != metav1.ConditionTrue && c.Type != "Ready" {
			parts = append(parts, strings.TrimSpace(c.Type+"="+string(c.Status)+" "+c.Reason))
		}
	}
	return parts
}
