//go:build release

package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
)

// unpackers are commands that unpack the package $0 into the current folder.
var unpackers = map[string]string{
	".deb": `dpkg-deb -x "$0" .`,
	".rpm": `rpm --checksig --nosignature "$0" >/dev/null && rpm2archive -n - <"$0" | tar -xf -`,
	".apk": `tar -xzf "$0" --warning=no-unknown-keyword`,
}

// checkPackages checks the packages of Linux distributions of a product.
func checkPackages(t *testing.T, a artifacts, p product, on platform) {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[on.Arch]
	for kind, unpack := range unpackers {
		name := arch + kind
		if kind == ".deb" {
			name = on.Arch + kind
		}
		var found []string
		for _, file := range list(t, a.dir) {
			if strings.HasSuffix(file, name) && (strings.HasPrefix(file, p.name+"_") || strings.HasPrefix(file, p.name+"-0") || strings.HasPrefix(file, p.name+"-1")) {
				found = append(found, file)
			}
		}
		if len(found) != 1 {
			t.Errorf("the packages *%s are %q", name, found)
			continue
		}
		root := t.TempDir()
		command(t, root, nil, "bash", "-euo", "pipefail", "-c", unpack, filepath.Join(a.dir, found[0]))
		checkInstalled(t, filepath.Join(root, "usr"), p, on, a.version)
		if kind == ".deb" && on == here {
			checkDpkg(t, filepath.Join(a.dir, found[0]), p)
		}
	}
}

// checkDpkg installs and removes a package below an empty root.
func checkDpkg(t *testing.T, name string, p product) {
	root := t.TempDir()
	state := filepath.Join(root, "var", "lib", "dpkg")
	for _, dir := range []string{"info", "updates"} {
		if err := os.MkdirAll(filepath.Join(state, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(state, "status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dpkg := func(args ...string) string {
		return command(t, root, nil, "dpkg", append([]string{"--root=" + root, "--force-not-root", "--force-bad-path", "--log=/dev/null"}, args...)...)
	}
	program := filepath.Join(root, "usr", "bin", programName(p.programs[0]))
	dpkg("--install", name)
	if out := command(t, root, nil, program, "--version"); out == "" {
		t.Errorf("%s prints nothing", program)
	}
	dpkg("--purge", p.name)
	if _, err := os.Lstat(program); !os.IsNotExist(err) {
		t.Errorf("dpkg leaves %s, %v", program, err)
	}
}

// checkSBOM checks that a bill of materials names the programs and what is in them.
func checkSBOM(t *testing.T, a artifacts, p product, on platform) {
	data, err := os.ReadFile(filepath.Join(a.dir, a.name(p.name, on)+".cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(data), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, c := range *bom.Components {
		versions[c.BOMRef] = c.Version
	}
	for _, path := range p.programs {
		if versions["bin/"+programName(path)] != a.version {
			t.Errorf("the bill of %s lacks %s", p.name, path)
		}
	}
	for _, d := range *bom.Dependencies {
		if d.Dependencies == nil || len(*d.Dependencies) == 0 {
			t.Errorf("%s depends on nothing", d.Ref)
			continue
		}
		for _, need := range *d.Dependencies {
			if versions[need] == "" {
				t.Errorf("%s needs %s, which the bill lacks", d.Ref, need)
			}
		}
	}
	if versions["pkg:golang/"+mainPath+"@"+a.version] == "" && p.name != "bus-agent-rest" {
		t.Errorf("the bill of %s lacks %s", p.name, mainPath)
	}
}

// readFormula plays Homebrew: it prints for which system a formula names which archive.
const readFormula = `
class Formula
  def self.desc(text) = nil
  def self.homepage(text) = nil
  def self.version(text) = nil
  def self.test = nil
  def self.on_macos = within("darwin") { yield }
  def self.on_linux = within("linux") { yield }
  def self.on_arm = within("arm64") { yield }
  def self.on_intel = within("amd64") { yield }
  def self.url(text) = @url = text
  def self.sha256(text) = puts("#{@within.join('_')} #{@url} #{text}")
  def self.within(name)
    (@within ||= []).push(name)
    yield
    @within.pop
  end
end
load ARGV[0]
`

// checkFormula checks that the formula of a product names each of its archives.
func checkFormula(t *testing.T, a artifacts, p product) {
	name := filepath.Join(a.dir, p.name+".rb")
	var want strings.Builder
	for _, on := range a.platforms {
		archive := a.name(p.name, on) + ".tar.gz"
		data, err := os.ReadFile(filepath.Join(a.dir, archive))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&want, "%s https://%s/releases/download/%s/%s %x\n", on, mainPath, a.version, archive, sha256.Sum256(data))
	}
	if got := command(t, t.TempDir(), nil, "ruby", "-W2", "-e", readFormula, name); got != want.String() {
		t.Errorf("the formula of %s names\n%s, want\n%s", p.name, got, want.String())
	}
}
