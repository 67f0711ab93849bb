// Command protodoc prints the reference of the gRPC contract as Markdown, from the comments of the
// proto files. Its input is a descriptor set with source positions, as "buf build" writes it.
//
// It is part of "make gen", which writes docs/reference/grpc.md, and is used by nothing else. The
// output depends on the input alone. A test checks the links of the page, and "make check-gen" its
// content.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// prefix is that of the packages of the contract.
const prefix = "hookloop."

const introduction = `# The gRPC contract

This page lists the services and messages of hooks over gRPC. It is generated from the comments in
[proto](../../proto) by ` + "`make gen`" + `. [any-language.md](../guides/any-language.md) shows how to write a
hook with them.

`

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "protodoc:", err)
		os.Exit(1)
	}
}

// run reads a descriptor set and writes the page.
func run(from io.Reader, to io.Writer) error {
	data, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(data, set); err != nil {
		return fmt.Errorf("standard input: %w; expected a descriptor set", err)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return err
	}
	p := &page{}
	p.WriteString(introduction)
	for _, pkg := range packages(files.RangeFiles) {
		p.pkg(pkg)
	}
	_, err = io.WriteString(to, strings.TrimSuffix(p.String(), "\n"))
	return err
}

// pkg is the files of one package, in the order of their names.
type pkg []protoreflect.FileDescriptor

// packages returns those of the contract: the services first, then what they share, then streams.
func packages(all func(func(protoreflect.FileDescriptor) bool)) []pkg {
	byName := map[string]pkg{}
	all(func(f protoreflect.FileDescriptor) bool {
		if name := string(f.Package()); strings.HasPrefix(name, prefix) {
			byName[name] = append(byName[name], f)
		}
		return true
	})
	var names []string
	for name, files := range byName {
		names = append(names, name)
		slices.SortFunc(files, func(a, b protoreflect.FileDescriptor) int { return strings.Compare(a.Path(), b.Path()) })
	}
	slices.SortFunc(names, func(a, b string) int {
		if rank(a) != rank(b) {
			return rank(a) - rank(b)
		}
		return strings.Compare(a, b)
	})
	var out []pkg
	for _, name := range names {
		out = append(out, byName[name])
	}
	return out
}

func rank(name string) int {
	switch {
	case strings.HasPrefix(name, prefix+"hook."):
		return 1
	case strings.HasPrefix(name, prefix+"stream."):
		return 2
	}
	return 0
}

// page is the text so far.
type page struct{ strings.Builder }

func (p *page) printf(format string, args ...any) { fmt.Fprintf(&p.Builder, format, args...) }

func (p *page) pkg(files pkg) {
	p.printf("## %s\n\n", files[0].Package())
	for _, f := range files {
		p.paragraphs(packageComment(f))
	}
	for _, f := range files {
		for i := range f.Services().Len() {
			p.service(f.Services().Get(i))
		}
	}
	for _, f := range files {
		p.messages(f.Messages())
		p.enums(f.Enums())
	}
}

// packageComment is the comment before the package statement.
func packageComment(f protoreflect.FileDescriptor) string {
	const packageField = 2 // of FileDescriptorProto
	return clean(f.SourceLocations().ByPath(protoreflect.SourcePath{packageField}).LeadingComments)
}

func (p *page) service(s protoreflect.ServiceDescriptor) {
	p.printf("### %s\n\n", short(s))
	p.paragraphs(comment(s))
	p.WriteString("| Method | Request | Response | Meaning |\n|---|---|---|---|\n")
	for i := range s.Methods().Len() {
		m := s.Methods().Get(i)
		p.printf("| `%s` | %s | %s | %s |\n", m.Name(), stream(m.IsStreamingClient())+link(m.Input()),
			stream(m.IsStreamingServer())+link(m.Output()), cell(m))
	}
	p.WriteString("\n")
}

func stream(is bool) string {
	if is {
		return "stream of "
	}
	return ""
}

func (p *page) messages(list protoreflect.MessageDescriptors) {
	for i := range list.Len() {
		m := list.Get(i)
		if m.IsMapEntry() {
			continue
		}
		p.printf("### %s\n\n", short(m))
		p.paragraphs(comment(m))
		if m.Fields().Len() > 0 {
			p.WriteString("| Field | Number | Type | Meaning |\n|---|---|---|---|\n")
		}
		for k := range m.Fields().Len() {
			f := m.Fields().Get(k)
			p.printf("| `%s` | %d | %s | %s |\n", f.Name(), f.Number(), typeOf(f), cell(f))
		}
		if m.Fields().Len() > 0 {
			p.WriteString("\n")
		}
		p.messages(m.Messages())
		p.enums(m.Enums())
	}
}

func (p *page) enums(list protoreflect.EnumDescriptors) {
	for i := range list.Len() {
		e := list.Get(i)
		p.printf("### %s\n\n", short(e))
		p.paragraphs(comment(e))
		p.WriteString("| Value | Number | Meaning |\n|---|---|---|\n")
		for k := range e.Values().Len() {
			v := e.Values().Get(k)
			p.printf("| `%s` | %d | %s |\n", v.Name(), v.Number(), cell(v))
		}
		p.WriteString("\n")
	}
}

// typeOf describes the type of a field.
func typeOf(f protoreflect.FieldDescriptor) string {
	if f.IsMap() {
		return "map of " + typeOf(f.MapKey()) + " to " + typeOf(f.MapValue())
	}
	name := f.Kind().String()
	switch {
	case f.Message() != nil:
		name = link(f.Message())
	case f.Enum() != nil:
		name = link(f.Enum())
	}
	switch oneof := f.ContainingOneof(); {
	case f.IsList():
		return "repeated " + name
	case f.HasOptionalKeyword():
		return "optional " + name
	case oneof != nil:
		return name + ", one of `" + string(oneof.Name()) + "`"
	}
	return name
}

// short is the name of a descriptor without the prefix of the contract.
func short(d protoreflect.Descriptor) string {
	return strings.TrimPrefix(string(d.FullName()), prefix)
}

// link names a type, with a link to its section if it is one of the contract.
func link(d protoreflect.Descriptor) string {
	name := string(d.FullName())
	if !strings.HasPrefix(name, prefix) {
		return "`" + name + "`"
	}
	return "[" + string(d.Name()) + "](#" + strings.ToLower(strings.ReplaceAll(short(d), ".", "")) + ")"
}

// comment is the comment before a descriptor.
func comment(d protoreflect.Descriptor) string {
	return clean(d.ParentFile().SourceLocations().ByDescriptor(d).LeadingComments)
}

// cell is a comment as one line of a table.
func cell(d protoreflect.Descriptor) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(comment(d)), " "), "|", `\|`)
}

// clean removes directives of linters.
func clean(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "buf:lint:") {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// width is the longest line of a paragraph.
const width = 110

// paragraphs writes a comment, wrapped.
func (p *page) paragraphs(text string) {
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		column := 0
		for word := range strings.FieldsSeq(paragraph) {
			if column > 0 && column+1+len(word) > width {
				p.WriteString("\n")
				column = 0
			}
			if column > 0 {
				p.WriteString(" ")
				column++
			}
			p.WriteString(word)
			column += len(word)
		}
		if column > 0 {
			p.WriteString("\n\n")
		}
	}
}
