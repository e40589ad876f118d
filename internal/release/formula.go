package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"text/template"
)

// formulaTemplate is a formula of Homebrew. An archive has the layout of a prefix.
var formulaTemplate = template.Must(template.New("formula").Parse(`class {{.Class}} < Formula
  desc "{{.Summary}}"
  homepage "https://{{.Home}}"
  version "{{.Version}}"
{{range .Archives}}
  on_{{if eq .On.OS "darwin"}}macos{{else}}linux{{end}} do
    on_{{if eq .On.Arch "arm64"}}arm{{else}}intel{{end}} do
      url "https://{{$.Home}}/releases/download/v{{$.Version}}/{{.Name}}"
      sha256 "{{.Sum}}"
    end
  end
{{end}}
  def install
    prefix.install "bin", "share"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/{{.Name}} --version")
  end
end
`))

// formula returns the formula of Homebrew for a product. archives are those for the
// platforms, in the same order.
func formula(p product, version string, on []platform, archives []file) (file, error) {
	type entry struct {
		On        platform
		Name, Sum string
	}
	var entries []entry
	for i, a := range archives {
		sum := sha256.Sum256(a.data)
		entries = append(entries, entry{on[i], a.name, hex.EncodeToString(sum[:])})
	}
	var class strings.Builder
	for word := range strings.SplitSeq(p.name, "-") {
		class.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	var text bytes.Buffer
	err := formulaTemplate.Execute(&text, map[string]any{
		"Class": class.String(), "Name": p.name, "Summary": strings.ToUpper(p.summary[:1]) + p.summary[1:],
		"Home": mainPath, "Version": version, "Archives": entries,
	})
	return file{p.name + ".rb", text.Bytes(), 0o644}, err
}
