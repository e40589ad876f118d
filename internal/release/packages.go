package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/apk"
	"github.com/goreleaser/nfpm/v2/deb"
	nfpmfiles "github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

// packagers make the packages of Linux distributions.
var packagers = []nfpm.Packager{deb.Default, rpm.DefaultRPM, apk.Default}

// linuxPackages returns the deb, rpm and apk packages of a product, with files below /usr.
func linuxPackages(p product, on platform, version string, files []file, modified time.Time) (made []file, err error) {
	stage, err := os.MkdirTemp("", "bus-agent-release-") // the packagers read files by name
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(stage)
	for _, f := range files {
		name := filepath.Join(stage, f.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(name, f.data, f.mode); err != nil {
			return nil, err
		}
	}
	for _, packager := range packagers {
		info := nfpm.WithDefaults(&nfpm.Info{
			Name: p.name, Platform: on.OS, Arch: on.Arch, Version: version,
			Section: "devel", Priority: "optional",
			Maintainer:  "the authors of bus-agent <https://" + mainPath + ">",
			Description: p.summary, Homepage: "https://" + mainPath,
			MTime: modified, DisableGlobbing: true,
			Overridables: nfpm.Overridables{RPM: nfpm.RPM{BuildHost: "localhost", Summary: p.summary}},
		})
		for _, f := range files {
			name := f.name
			if packager == nfpm.Packager(deb.Default) { // where zsh of Debian looks
				name = strings.Replace(name, "share/zsh/site-functions/", "share/zsh/vendor-completions/", 1)
			}
			info.Contents = append(info.Contents, &nfpmfiles.Content{
				Source: filepath.Join(stage, f.name), Destination: "/usr/" + name,
				FileInfo: &nfpmfiles.ContentFileInfo{Owner: "root", Group: "root", Mode: f.mode, MTime: modified},
			})
		}
		var data bytes.Buffer
		if err := packager.Package(info, &data); err != nil {
			return nil, fmt.Errorf("package of %s for %s: %w", p.name, on, err)
		}
		// GitHub replaces "~", which a version before a release has.
		name := strings.ReplaceAll(packager.ConventionalFileName(info), "~", ".")
		made = append(made, file{name, data.Bytes(), 0o644})
	}
	return made, nil
}
