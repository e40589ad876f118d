# bus-agent: every target works on a clean checkout with Go; acceptance and demo
# install what else they need into .cache.

PREFIX ?= $(HOME)/.local
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
TAGS := urfave_cli_no_docs
LDFLAGS := -s -w -X main.version=$(VERSION)
GOFLAGS_BUILD := -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS)'
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
CODEX_VERSION := 0.169.0
CLAUDE_VERSION := 2.1.329
GEMINI_VERSION := 0.61.0
QWEN_VERSION := 0.15.10
AGENTS := $(CURDIR)/.cache/agents
BENCHMARKS = $(shell git grep -l '^func Benchmark' -- '*_test.go' | xargs -n1 dirname | sort -u)
MODULE := github.com/busdk/bus-agent
MODULES := $(shell git ls-files '*go.mod' | xargs -n1 dirname)

.PHONY: all build test race flaky check hostile acceptance soak bench bench-page bench-once fuzz demo install clean agents tmux chromium fmt api

all: build

build:
	CGO_ENABLED=0 go build $(GOFLAGS_BUILD) -o bin/bus-agent ./cmd/bus-agent

# Hermetic: stub agents only, no network, every module of the tree. The packages of
# STARTERS start thousands of programs, and other modules compile much that is not
# ours; each takes many times as long with the race detector, so they have a target of
# their own there.
STARTERS := ./cmd/bus-agent ./backendtest ./runner ./runs ./internal/process ./session/control
test:
	@set -e; for m in $(filter-out .,$(MODULES)); do echo "go test ($$m)"; (cd $$m && go test ./...); done
	go test -race $(filter-out $(STARTERS:./%=$(MODULE)/%),$(shell go list ./...))
	go test $(STARTERS)
	go test -tags purego ./jsonline

race:
	@set -e; for m in $(filter-out .,$(MODULES)); do echo "go test -race ($$m)"; (cd $$m && go test -race ./...); done
	go test -race $(STARTERS)

# Every test COUNT times while all cores are busy, until the first failure. PKGS
# ("./runner ./internal/...") and RUN choose some.
COUNT ?= 30
flaky:
	@COUNT='$(COUNT)' PKGS='$(PKGS)' RUN='$(RUN)' STARTERS='$(STARTERS)' ./scripts/flaky.sh

# What other modules can call, as docs/api.txt lists it.
api:
	go test ./internal/layers -run TestAPIIsListed -args -update

fmt:
	gofmt -w $$(git ls-files '*.go')

check:
	./scripts/check.sh $(STATICCHECK)

agents:
	./scripts/install-agents.sh '$(AGENTS)' @openai/codex@$(CODEX_VERSION) \
		@anthropic-ai/claude-code@$(CLAUDE_VERSION) @google/gemini-cli@$(GEMINI_VERSION) \
		@qwen-code/qwen-code@$(QWEN_VERSION)

tmux:
	./scripts/install-tmux.sh

chromium:
	./scripts/install-chromium.sh

# Attacks from the repository, from the agent and from what a killed run left: on every
# runtime that is registered, every engine and every kind of state, by stub agents and
# by the real CLIs.
hostile:
	go test -count=1 -tags 'hostile rest' -run '^TestAttack' ./backends/all
	go test -count=1 -run Hostile ./...
	$(MAKE) acceptance RUN=Hostile

# Drives the real CLIs against scripted model servers on loopback, and a browser over
# the pages that are written. RUN and SKIP choose tests.
acceptance: build agents tmux chromium
	BUS_AGENT_BIN='$(CURDIR)/bin/bus-agent' BUS_AGENT_CODEX='$(AGENTS)/node_modules/.bin/codex' \
		BUS_AGENT_CLAUDE='$(AGENTS)/node_modules/.bin/claude' BUS_AGENT_GEMINI='$(AGENTS)/node_modules/.bin/gemini' \
		BUS_AGENT_QWEN='$(AGENTS)/node_modules/.bin/qwen' \
		BUS_AGENT_CHROMIUM="$$(./scripts/install-chromium.sh)" \
		go test -tags acceptance -count=1 -parallel 6 -timeout 30m -run '$(RUN)' -skip '$(SKIP)' ./acceptance/... ./session/tmux ./runs/report

# Large, long and many runs of the built program: about ten minutes.
soak: build
	cd internal/soak && BUS_AGENT_BIN='$(CURDIR)/bin/bus-agent' go test -tags soak -count=1 -timeout 60m .
	go test -tags soak -count=1 -run 'OneByOne$$' ./cmd/bus-agent
	cd bus-preferences && go test -tags soak -count=1 ./...

# Figures beside the limits they are measured against. bench-page puts them into
# docs/performance.md.
bench: build
	go run ./internal/bench -bus-agent bin/bus-agent

bench-page: build
	go run ./internal/bench -bus-agent bin/bus-agent -page docs/performance.md
	go -C internal/bench/json test -count=1 -run '^TestPage$$' -benchtime 0.2s -page $(CURDIR)/docs/performance.md .

# Each benchmark once, so that none rots. No figure fails it.
bench-once: build
	go run ./internal/bench -bus-agent bin/bus-agent -quick
	@set -e; for d in $(BENCHMARKS); do echo "benchmarks of $$d"; go -C $$d test -run '^$$' -bench . -benchtime 1x . >/dev/null; done

# Every fuzz target of every module, FUZZTIME each. NAME chooses one.
FUZZTIME ?= 20s
fuzz:
	./scripts/fuzz.sh '$(FUZZTIME)' '$(NAME)'

demo: build
	@go run ./internal/demo -bus-agent bin/bus-agent -agents '$(AGENTS)' -codex $(CODEX_VERSION)

install: build
	install -d '$(DESTDIR)$(PREFIX)/bin'
	install -m 0755 bin/bus-agent '$(DESTDIR)$(PREFIX)/bin/bus-agent'

clean:
	rm -rf bin .cache
