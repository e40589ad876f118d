package main

import (
	"fmt"
	"slices"
	"strings"
)

// A group is a part of the menu.
type group struct {
	Name    string
	entries []entry
	Pages   []*page
}

// An entry is a page in the menu.
type entry struct{ source, label string }

// menu lists the pages in the order of the menu. Pages that it does not list come last.
var menu = []group{
	{Name: "Start", entries: []entry{
		{"README.md", "Overview"}, {"docs/installing.md", "Installing"}, {"docs/recipes.md", "Recipes"}, {"docs/cli.md", "Command line"}, {"CHANGELOG.md", "Changelog"},
	}},
	{Name: "Use", entries: []entry{
		{"docs/selection.md", "Runtimes and settings"}, {"docs/options.md", "Options"}, {"docs/instructions.md", "Project instructions"},
		{"docs/attachments.md", "Attachments"}, {"docs/structured-output.md", "Structured output"}, {"docs/sessions.md", "Sessions"},
		{"docs/runs.md", "Run records"}, {"docs/events.md", "Events"}, {"docs/security.md", "Security"},
		{"docs/stability.md", "Stability"},
	}},
	{Name: "Connect", entries: []entry{
		{"docs/editors.md", "Editors"}, {"docs/delegation.md", "Agents that run agents"}, {"docs/github-actions.md", "GitHub Actions"},
		{"otel/README.md", "OpenTelemetry"}, {"bus-integration-task/README.md", "Task worker"},
		{"bus-integration-task/docs/faults.md", "Task worker: faults"}, {"bus-integration-task/docs/scale.md", "Task worker: scale"},
	}},
	{Name: "Runtimes", entries: []entry{
		{"docs/compatibility.md", "Compatibility"}, {"docs/runtimes/codex.md", "Codex CLI"}, {"docs/runtimes/claude.md", "Claude Code"},
		{"docs/runtimes/gemini.md", "Gemini CLI"}, {"docs/runtimes/cursor.md", "Cursor CLI"}, {"docs/runtimes/rest.md", "Models behind HTTP"},
		{"docs/runtimes/more.md", "Further runtimes"},
	}},
	{Name: "Develop", entries: []entry{
		{"docs/adding-a-runtime.md", "Adding a runtime"}, {"docs/architecture.md", "Architecture"}, {"docs/departures.md", "Departures"},
		{"docs/performance.md", "Performance"}, {"bus-preferences/README.md", "bus-preferences"}, {"CONTRIBUTING.md", "Contributing"},
	}},
}

// order puts the pages into the menu. It fails if the menu lists a page that does not
// exist, or one twice.
func (s *site) order(groups []group) error {
	listed := map[*page]bool{}
	for _, g := range groups {
		g.Pages = nil
		for _, e := range g.entries {
			p := s.pages[e.source]
			if p == nil {
				return fmt.Errorf("the menu lists %s, which does not exist", e.source)
			}
			if listed[p] {
				return fmt.Errorf("the menu lists %s twice", e.source)
			}
			p.Label, listed[p] = e.label, true
			g.Pages = append(g.Pages, p)
		}
		s.menu = append(s.menu, g)
	}
	more := group{Name: "More"}
	for _, p := range s.pages {
		if !listed[p] {
			p.Label = p.Title
			more.Pages = append(more.Pages, p)
		}
	}
	slices.SortFunc(more.Pages, func(a, b *page) int { return strings.Compare(a.source, b.source) })
	if len(more.Pages) > 0 {
		s.menu = append(s.menu, more)
	}
	return nil
}
