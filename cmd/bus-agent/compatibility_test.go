package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/verify"
	"github.com/busdk/bus-agent/verify/targets"
)

const compatibilityTitle = `# Compatibility

What [bus-agent verify](cli.md#verify) found with the real CLIs. It checks these promises
against a scripted model, without an account. Run ` + "`bus-agent verify RUNTIME`" + ` to check the
version that you have.

| runtime | CLI version | date | kept | known failures | unsupported | broken |
|---|---|---|--:|--:|--:|--:|
`

const compatibilityEnd = `
## This page

` + "`make verified`" + ` runs the CLIs and writes ` + "`verify/targets/verified.json`" + `, from which
` + "`make compatibility`" + ` writes this page. A date is that of the first run with the same results.
`

// unverified are the reasons why runtimes have no results.
var unverified = map[string]string{
	"cursor":     "its CLI works only with a login, see [Cursor CLI](runtimes/cursor.md)",
	"openai":     needsREST,
	"perplexity": needsREST,
	"xai":        needsREST,
}

const needsREST = "only in builds with the tag `rest`, see [models behind HTTP](runtimes/rest.md)"

func TestCompatibilityIsUpToDate(t *testing.T) {
	t.Parallel()
	checkPage(t, "compatibility.md", compatibility(t), "make compatibility")
}

// What a runtime says it was tested with is what was verified.
func TestVerifiedIsTheTestedVersion(t *testing.T) {
	t.Parallel()
	for _, target := range targets.All() {
		rt, ok := registry.Default().Lookup(target.Runtime)
		if v := target.Verified; !ok || v.Version != "" && v.Version != rt.TestedVersion {
			t.Errorf("%s: tested with %q, verified with %q", target.Runtime, rt.TestedVersion, v.Version)
		}
	}
}

// compatibility returns docs/compatibility.md.
func compatibility(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(compatibilityTitle)
	var records []verify.Record
	for _, target := range targets.All() {
		if r := target.Verified; r.Version != "" {
			records = append(records, r)
			count := map[verify.Status]int{}
			for _, result := range r.Results {
				count[result.Status]++
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %d | %d |\n", r.Runtime, r.Version, r.Date,
				count[verify.Kept], count[verify.KnownFailure], count[verify.Unsupported], count[verify.Broken])
		}
	}
	b.WriteString("\n## Promises\n\n" + promises(records))
	for _, reasons := range []struct {
		title string
		of    func(verify.Result) string
	}{
		{"Known failures", func(r verify.Result) string { return r.Known }},
		{"Unsupported", func(r verify.Result) string { return r.Detail }},
	} {
		var list string
		for _, r := range records {
			for _, result := range r.Results {
				if why := reasons.of(result); why != "" {
					list += fmt.Sprintf("- %s, `%s`: %s\n", r.Runtime, result.Check, why)
				}
			}
		}
		if list != "" {
			b.WriteString("\n## " + reasons.title + "\n\n" + list)
		}
	}
	b.WriteString("\n## Unverified\n\n" + withoutRecord(t, records) + compatibilityEnd)
	return b.String()
}

// promises returns the table of all checks and their results.
func promises(records []verify.Record) string {
	head, line := "| check | promise |", "|---|---|"
	for _, r := range records {
		head += " " + r.Runtime + " |"
		line += "---|"
	}
	rows := head + "\n" + line + "\n"
	for _, c := range verify.Checks() {
		rows += fmt.Sprintf("| `%s` | %s |", c.Name, strings.ReplaceAll(c.Promise, "|", `\|`))
		for _, r := range records {
			text := "unverified"
			if i := slices.IndexFunc(r.Results, func(result verify.Result) bool { return result.Check == c.Name }); i >= 0 {
				text = map[verify.Status]string{
					verify.Kept: "kept", verify.KnownFailure: "**known failure**", verify.Unsupported: "unsupported", verify.Broken: "**broken**",
				}[r.Results[i].Status]
			}
			rows += " " + text + " |"
		}
		rows += "\n"
	}
	return rows
}

// runtimeIDs returns the IDs of all runtimes, also of those that only other builds have.
func runtimeIDs(t *testing.T) []string {
	t.Helper()
	folders, err := os.ReadDir(filepath.Join("..", "..", "backends"))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, folder := range folders {
		if id := folder.Name(); id != "all" && id != "more" && id != "rest" {
			ids = append(ids, id)
		}
	}
	for _, rt := range registry.Default().All() {
		ids = append(ids, rt.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// withoutRecord returns the list of the runtimes that have no results.
func withoutRecord(t *testing.T, records []verify.Record) (list string) {
	t.Helper()
	for _, id := range runtimeIDs(t) {
		if slices.ContainsFunc(records, func(r verify.Record) bool { return r.Runtime == id }) {
			continue
		}
		list += "- " + id
		if why := unverified[id]; why != "" {
			list += ": " + why
		}
		list += "\n"
	}
	return list
}
