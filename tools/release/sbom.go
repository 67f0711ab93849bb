package main

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM writes the modules that the programs contain, as a CycloneDX document. The Go linker
// records them in each program, so that the list has the linked modules only.
func (r *release) writeSBOM(context.Context) error {
	linked := map[string]*debug.Module{}
	toolchain := ""
	for _, t := range r.targets {
		info, err := buildinfo.ReadFile(r.program(t))
		if err != nil {
			return err
		}
		toolchain = info.GoVersion
		for _, m := range info.Deps {
			if m.Replace != nil {
				return fmt.Errorf("the program for %s/%s replaces the module %s, expected only published modules",
					t.system, t.machine, m.Path)
			}
			linked[m.Path] = m
		}
	}
	document, err := r.sbom(linked, toolchain)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	encoder := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false)
	if err := encoder.EncodeVersion(document, cdx.SpecVersion1_6); err != nil {
		return err
	}
	return writeFile(r.file("sbom.cdx.json"), out.Bytes())
}

// sbom returns the document of a program with these modules.
func (r *release) sbom(linked map[string]*debug.Module, toolchain string) (*cdx.BOM, error) {
	main := component(cdx.ComponentTypeApplication, modulePath, r.tag())
	main.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
	// The toolchain's name is "go1.26.8", the version of the module std "1.26.8".
	components := []cdx.Component{component(cdx.ComponentTypeLibrary, "std", strings.TrimPrefix(toolchain, "go"))}
	for _, m := range linked {
		c := component(cdx.ComponentTypeLibrary, m.Path, m.Version)
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
		if err != nil || len(sum) == 0 {
			return nil, fmt.Errorf("module %s: got checksum %q, expected h1: and base64", m.Path, m.Sum)
		}
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
		components = append(components, c)
	}
	slices.SortFunc(components, func(a, b cdx.Component) int { return cmp.Compare(a.Name, b.Name) })
	refs := make([]string, 0, len(components))
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	document := cdx.NewBOM()
	document.Metadata = &cdx.Metadata{Timestamp: r.when.Format(time.RFC3339), Component: &main}
	document.Components = &components
	document.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	return document, nil
}

// component returns a Go module as a component. Its reference is its package URL.
func component(kind cdx.ComponentType, path, version string) cdx.Component {
	url := "pkg:golang/" + path + "@" + version
	return cdx.Component{Type: kind, BOMRef: url, PackageURL: url, Name: path, Version: version}
}
