package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// sbom returns the bill of materials of a product in CycloneDX: its programs, and the
// modules and the version of Go that the programs themselves name.
func sbom(p product, name, version string, programs []file, modified time.Time) (file, error) {
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = "" // random
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: modified.Format(time.RFC3339),
		Component: &cyclonedx.Component{Type: cyclonedx.ComponentTypeApplication, BOMRef: name, Name: p.name, Version: version},
	}
	var components []cyclonedx.Component
	var dependencies []cyclonedx.Dependency
	known := map[string]bool{}
	var names []string
	for _, program := range programs {
		info, err := buildinfo.Read(bytes.NewReader(program.data))
		if err != nil {
			return file{}, fmt.Errorf("%s: %w", program.name, err)
		}
		sum := sha256.Sum256(program.data)
		components = append(components, cyclonedx.Component{
			Type: cyclonedx.ComponentTypeApplication, BOMRef: program.name, Name: path.Base(program.name), Version: info.Main.Version,
			Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		})
		names = append(names, program.name)
		var needs []string
		standard := &debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}
		for _, m := range append([]*debug.Module{standard, &info.Main}, info.Deps...) {
			c := component(m)
			needs = append(needs, c.BOMRef)
			if !known[c.BOMRef] {
				known[c.BOMRef] = true
				components = append(components, c)
			}
		}
		dependencies = append(dependencies, cyclonedx.Dependency{Ref: program.name, Dependencies: &needs})
	}
	dependencies = append(dependencies, cyclonedx.Dependency{Ref: name, Dependencies: &names})
	bom.Components, bom.Dependencies = &components, &dependencies
	var data bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&data, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return file{name + ".cdx.json", data.Bytes(), 0o644}, err
}

// component returns the entry of a module.
func component(m *debug.Module) cyclonedx.Component {
	if m.Replace != nil {
		m = m.Replace
	}
	url := "pkg:golang/" + m.Path + "@" + m.Version
	c := cyclonedx.Component{Type: cyclonedx.ComponentTypeLibrary, BOMRef: url, Name: m.Path, Version: m.Version, PackageURL: url}
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) == sha256.Size {
		c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	return c
}
