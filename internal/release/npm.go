package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

//go:embed npm/launch.js
var launcher []byte

// npmScope is the scope of the packages with programs.
const npmScope = "@busdk"

// manifest is a package.json.
type manifest struct {
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	Description string            `json:"description"`
	Repository  map[string]string `json:"repository"` // npm checks it against the provenance
	OS          []string          `json:"os,omitempty"`
	CPU         []string          `json:"cpu,omitempty"`
	Bin         map[string]string `json:"bin,omitempty"`
	Engines     map[string]string `json:"engines,omitempty"`
	Optional    map[string]string `json:"optionalDependencies,omitempty"`
}

func newManifest(name, version, description string) manifest {
	return manifest{
		Name: name, Version: version, Description: description,
		Repository: map[string]string{"type": "git", "url": "git+https://" + mainPath + ".git"},
	}
}

// npmArch returns the name of npm for an architecture.
func npmArch(arch string) string {
	if arch == "amd64" {
		return "x64"
	}
	return arch
}

// npmName returns the name of the package with the programs for a platform.
func npmName(p platform) string { return npmScope + "/bus-agent-" + p.OS + "-" + npmArch(p.Arch) }

// npmPrograms returns the package of npm with programs for a platform, which npm installs
// on that platform only.
func npmPrograms(on platform, version string, programs []file, modified time.Time) (file, error) {
	m := newManifest(npmName(on), version, "The programs of bus-agent for "+on.OS+" on "+on.Arch)
	m.OS, m.CPU = []string{on.OS}, []string{npmArch(on.Arch)}
	return pack(m, programs, modified)
}

// npmLauncher returns the package of npm that users install. It depends on those of
// npmPrograms and starts their programs. shared are the files of the product.
func npmLauncher(p product, version string, shared []file, modified time.Time) (file, error) {
	m := newManifest(p.name, version, p.summary)
	m.Engines = map[string]string{"node": ">=18"}
	m.Bin, m.Optional = map[string]string{}, map[string]string{}
	for _, on := range platforms {
		m.Optional[npmName(on)] = version
	}
	files := []file{{"launch.js", launcher, 0o644}}
	for _, f := range shared {
		if name, ok := strings.CutPrefix(f.name, "share/doc/"+p.name+"/"); ok && !strings.Contains(name, "/") {
			files = append(files, file{name, f.data, f.mode}) // README.md, the licence
		}
	}
	for _, path := range p.programs {
		name := programName(path)
		m.Bin[name] = "bin/" + name + ".js"
		script := fmt.Sprintf("#!/usr/bin/env node\nrequire('../launch.js')('%s');\n", name)
		files = append(files, file{m.Bin[name], []byte(script), 0o755})
	}
	return pack(m, files, modified)
}

// pack returns a package as "npm pack" writes and names it.
func pack(m manifest, files []file, modified time.Time) (file, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return file{}, err
	}
	data, err := archive("package", append([]file{{"package.json", append(text, '\n'), 0o644}}, files...), modified)
	name := strings.ReplaceAll(strings.TrimPrefix(m.Name, "@"), "/", "-") + "-" + m.Version + ".tgz"
	return file{name, data, 0o644}, err
}
