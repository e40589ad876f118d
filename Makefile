# All targets work in a clean checkout with Go. acceptance, demo and others install further
# programs into .cache; on Debian, some install packages with apt.

PREFIX ?= $(HOME)/.local
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
TAGS := urfave_cli_no_docs
LDFLAGS := -s -w -X main.version=$(VERSION)
GOFLAGS_BUILD := -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS)'
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
AXE_VERSION := 4.14.1
INSPECTOR_VERSION := 0.15.0
AGENTS := $(CURDIR)/.cache/agents
OPENCODE := $(CURDIR)/.cache/opencode
AXE := $(CURDIR)/.cache/axe
NODE_VERSION := 24.9.0
NODE := $(CURDIR)/.cache/node
INSPECTOR := $(CURDIR)/.cache/inspector
ACP_SDK_VERSION := 2.4.0
ACPX_VERSION := 0.19.1
ACP_CLIENTS := $(CURDIR)/.cache/acp-clients
CODEX_SDK_VERSION := 0.163.0
CLAUDE_SDK_VERSION := 0.3.332
SDKS := $(CURDIR)/.cache/sdks
BENCHMARKS = $(or $(shell ./scripts/files.sh '*_test.go' 2>/dev/null | xargs -r grep -l '^func Benchmark' | xargs -r -n1 dirname | sort -u),$(error no benchmarks in the repository; run this in a git checkout))
MODULE := github.com/busdk/bus-agent
MODULES = $(or $(shell ./scripts/files.sh -d '*go.mod' 2>/dev/null),$(error no go.mod in the repository; run this in a git checkout))

.PHONY: all build build-mcp test test-all frozen frozen-update flaky check attacks hostile acceptance acceptance-task soak bench bench-page bench-once bench-task fuzz demo demo-task soak-task install clean agents opencode tmux chromium packaging programs axe acp-clients sdks inspector fmt api canary verified compatibility release-tree release-test release-snapshot docs docs-test

all: build

build:
	CGO_ENABLED=0 go build $(GOFLAGS_BUILD) -o bin/bus-agent ./cmd/bus-agent

# The program behind "bus-agent mcp", in a separate module.
build-mcp:
	CGO_ENABLED=0 go build -C bus-agent-mcp $(GOFLAGS_BUILD) -o ../bin/bus-agent-mcp .

# Tests of the core module, with stub agents and without network, C compiler or root. What
# the machine lacks is skipped and listed. `make check` vets.
GOTEST := $(CURDIR)/scripts/in-memory.sh $(CURDIR)/scripts/gotest.sh
GOTESTFLAGS := -vet=off -ldflags=-w
test:
	CGO_ENABLED=0 $(GOTEST) $(GOTESTFLAGS) ./...

# All modules with the race detector, and what is slow; needs a C compiler. The tests of
# backends, of the command and of verify mostly start programs; package runner, the commands
# and the sessions test the same code, so one test of package backendtest is enough.
test-all:
	SLOWEST=10 $(GOTEST) $(GOTESTFLAGS) -race -timeout 30m $$(go list ./... | grep -vE '/(backends/.*|backendtest|cmd/bus-agent|verify|test/frozen|internal/layers)$$')
	$(GOTEST) $(GOTESTFLAGS) -race -run '^ExampleCheck$$' ./backendtest
	$(GOTEST) $(GOTESTFLAGS) -tags slow -run '^TestConsumer$$' ./internal/layers
	@set -e; for m in $(filter-out .,$(MODULES)); do echo "go test -race ($$m)"; (cd $$m && $(GOTEST) $(GOTESTFLAGS) -race ./...); done
	go test -tags purego ./jsonline

# Compare the behaviour of bus-agent with the files in test/frozen/testdata; write them.
REPLAYS := ./appserver ./session/acp ./session/streamjson
frozen:
	CGO_ENABLED=0 $(GOTEST) $(GOTESTFLAGS) -count=1 ./test/frozen
	CGO_ENABLED=0 $(GOTEST) $(GOTESTFLAGS) -count=1 -run '^Test(Transcripts|Recordings)$$' $(REPLAYS)
frozen-update:
	CGO_ENABLED=0 go test $(GOTESTFLAGS) ./test/frozen -args -update
	CGO_ENABLED=0 go test $(GOTESTFLAGS) -run '^TestTranscripts$$' $(filter-out ./session/acp,$(REPLAYS)) -args -update

# Every test of the core module COUNT times in random order, four packages at a time.
# PKGS="./runner ./internal/..." and RUN select tests.
COUNT ?= 10
PKGS ?= ./...
flaky:
	CGO_ENABLED=0 SLOWEST=10 $(GOTEST) $(GOTESTFLAGS) -count=$(COUNT) -shuffle=on -p 4 -timeout 60m $(if $(RUN),-run '$(RUN)') $(PKGS)

# Update docs/api.txt, the list of the public API.
api:
	go test ./internal/layers -run TestAPIIsListed -args -update

# Verify the real CLIs, keep the results and show them in docs/compatibility.md.
verified: build agents
	PATH='$(AGENTS)/node_modules/.bin':"$$PATH" bin/bus-agent verify --save verify/targets/verified.json
	$(MAKE) compatibility

# Verify the newest versions of the CLIs, and print what changed against the kept results.
# Some need a newer Node.js than that of the machine.
canary:
	./scripts/install-agents.sh '$(NODE)' node@$(NODE_VERSION)
	PATH='$(NODE)/node_modules/.bin':"$$PATH" go run ./internal/canary -dir .cache/canary

# Write docs/compatibility.md from the kept results, and docs/options.md from the
# descriptions of the runtimes.
compatibility:
	go test ./cmd/bus-agent -run '^Test(Compatibility|OptionsPage)IsUpToDate$$' -args -update

# Make the tree that is tagged as VERSION, without replace lines, and a module proxy that
# serves its modules, in dist/VERSION.
release-tree:
	mkdir -p dist
	go -C internal/release run . -root '$(CURDIR)' -version '$(VERSION)' -out '$(CURDIR)/dist/$(VERSION)'

# Make what users download of VERSION, for all platforms, in dist/snapshot/artifacts, and
# test it. The second time everything is built with an empty cache, to compare the bytes.
release-snapshot: VERSION := v0.0.0-g$(shell git rev-parse --short HEAD)
release-snapshot: packaging
	mkdir -p dist
	rm -rf dist/snapshot
	go -C internal/release run . -artifacts -root '$(CURDIR)' -version '$(VERSION)' -out '$(CURDIR)/dist/snapshot'
	cd internal/release && ../../scripts/gotest.sh -tags release -count=1 -timeout 60m -run '^TestArtifacts$$' . \
		-args -snapshot '$(CURDIR)/dist/snapshot' -version '$(VERSION)'

# Install all programs, and build what users write, from the modules of such a tree. Make
# and test what users download, for this platform.
release-test: packaging
	cd internal/release && BUS_AGENT_NODE='$(NODE)/node_modules/.bin/node' \
		../../scripts/gotest.sh -tags release -count=1 -timeout 30m ./...

# Make the documentation site in dist/docs, and check its links.
docs:
	mkdir -p dist
	rm -rf dist/docs
	go -C internal/website run . -root '$(CURDIR)' -version '$(VERSION)' -out '$(CURDIR)/dist/docs'

# Open the pages of the site in a browser, on small and wide screens, light and dark.
docs-test: chromium axe
	cd internal/website && BUS_AGENT_CHROMIUM="$$(../../scripts/install-chromium.sh)" BUS_AGENT_AXE='$(AXE)/node_modules/axe-core/axe.min.js' \
		../../scripts/gotest.sh -tags acceptance -count=1 -timeout 30m ./...

fmt:
	@files="$$(./scripts/files.sh '*.go')" && gofmt -w $$files

check:
	./scripts/check.sh $(STATICCHECK) $(ACTIONLINT)

# The CLIs of scripts/agents.txt.
agents:
	./scripts/install-agents.sh '$(AGENTS)'

tmux:
	./scripts/install-tmux.sh

chromium:
	./scripts/install-chromium.sh

# rpm, ruby and a new Node.js, in tests of releases only.
packaging:
	./scripts/install-programs.sh rpm ruby
	./scripts/install-agents.sh '$(NODE)' node@$(NODE_VERSION)

# All that the other targets build and install, except for sdks.
programs: build build-mcp agents opencode tmux chromium packaging axe inspector acp-clients

# axe-core checks the accessibility of pages, in tests only.
axe:
	./scripts/install-agents.sh '$(AXE)' axe-core@$(AXE_VERSION)

# The MCP inspector calls the tools of bus-agent mcp, in tests only.
inspector:
	./scripts/install-agents.sh '$(INSPECTOR)' @modelcontextprotocol/inspector@$(INSPECTOR_VERSION)

# Clients of the Agent Client Protocol, for the tests of "bus-agent acp".
acp-clients:
	./scripts/install-agents.sh '$(ACP_CLIENTS)' @agentclientprotocol/sdk@$(ACP_SDK_VERSION) acpx@$(ACPX_VERSION)

opencode:
	./scripts/install-agents.sh '$(OPENCODE)' opencode

# The SDKs of vendors, for "make bench"; without the CLIs that they bring.
sdks:
	npm_config_omit=optional ./scripts/install-agents.sh '$(SDKS)' @openai/codex-sdk@$(CODEX_SDK_VERSION) @anthropic-ai/claude-agent-sdk@$(CLAUDE_SDK_VERSION)

# Attacks by the repository, by the agent and by stale files of a killed run, on every
# registered runtime, engine and kind of state, with stub agents and with the real CLIs:
# the tests that have Attack or Hostile in their names. Those of attacks are not in test.
attacks:
	./scripts/gotest.sh -count=1 -tags 'hostile rest' -run '^TestAttack' ./backends/all

hostile: attacks
	./scripts/gotest.sh -count=1 -run Hostile ./...
	@set -e; for m in $(filter-out .,$(MODULES)); do echo "go test -run Hostile ($$m)"; (cd $$m && go test -count=1 -run Hostile ./...); done
	$(MAKE) acceptance RUN=Hostile

# Test with the real CLIs and scripted model servers on loopback, and open the written
# pages in a browser. RUN and SKIP select tests.
acceptance: build build-mcp agents opencode tmux chromium axe acp-clients inspector
	BUS_AGENT_BIN='$(CURDIR)/bin/bus-agent' BUS_AGENT_CODEX='$(AGENTS)/node_modules/.bin/codex' \
		BUS_AGENT_CLAUDE='$(AGENTS)/node_modules/.bin/claude' BUS_AGENT_GEMINI='$(AGENTS)/node_modules/.bin/gemini' \
		BUS_AGENT_QWEN='$(AGENTS)/node_modules/.bin/qwen' BUS_AGENT_INSPECTOR='$(INSPECTOR)/node_modules/.bin/mcp-inspector' \
		BUS_AGENT_OPENCODE='$(OPENCODE)/node_modules/.bin/opencode' BUS_AGENT_ACP_CLIENTS='$(ACP_CLIENTS)/node_modules' \
		BUS_AGENT_CHROMIUM="$$(./scripts/install-chromium.sh)" BUS_AGENT_AXE='$(AXE)/node_modules/axe-core/axe.min.js' \
		./scripts/gotest.sh -tags acceptance -count=1 -parallel 6 -timeout 30m -run '$(RUN)' -skip '$(SKIP)' ./acceptance/... ./session/tmux ./runs/report

# The same for the task worker, and its demo, which has to show the commit.
acceptance-task: agents chromium axe
	cd bus-integration-task && BUS_AGENT_CODEX='$(AGENTS)/node_modules/.bin/codex' \
		BUS_AGENT_CLAUDE='$(AGENTS)/node_modules/.bin/claude' BUS_AGENT_GEMINI='$(AGENTS)/node_modules/.bin/gemini' \
		BUS_AGENT_CHROMIUM="$$(../scripts/install-chromium.sh)" BUS_AGENT_AXE='$(AXE)/node_modules/axe-core/axe.min.js' \
		../scripts/gotest.sh -tags acceptance -count=1 ./worker/... ./board/...
	@shown="$$($(MAKE) -s demo-task)" && printf '%s\n' "$$shown" && printf '%s' "$$shown" | grep -q 'greeting.txt | 1 +'

# Large, long and many runs of the built program, about ten minutes.
soak: build
	cd internal/soak && BUS_AGENT_BIN='$(CURDIR)/bin/bus-agent' go test -tags soak -count=1 -timeout 60m .
	./scripts/gotest.sh -tags soak -count=1 -run 'OneByOne$$' ./cmd/bus-agent
	cd bus-preferences && go test -tags soak -count=1 ./...
	cd bus-integration-task && go test -tags soak -count=1 ./eventserver
	$(MAKE) soak-task DURATION=10m TASKS=2000

# Tasks of many workers while workers, servers and the network between them fail at random,
# for DURATION and until TASKS have ended. SEED repeats the order of the faults.
DURATION ?= 1m
TASKS ?= 0
soak-task:
	cd bus-integration-task && ../scripts/gotest.sh -tags soak -count=1 -v -timeout 60m -run '^TestSoak$$' ./internal/soak \
		-args -duration $(DURATION) -tasks $(TASKS) $(if $(SEED),-seed $(SEED))

# Measure performance and compare with the limits. bench-page also updates the tables of
# docs/performance.md.
BENCH := go run ./internal/bench -bus-agent bin/bus-agent -agents '$(AGENTS)' -acp-clients '$(ACP_CLIENTS)' -sdks '$(SDKS)'
bench: build build-mcp agents acp-clients sdks
	$(BENCH)
	$(MAKE) bench-task

bench-page: build build-mcp agents acp-clients sdks
	$(BENCH) -only start,spawn,held,many,throughput,long,sessions -page docs/performance.md
	$(BENCH) -only through,clients,clis -table clients -page docs/performance.md
	go -C internal/bench/json test -count=1 -run '^TestPage$$' -benchtime 0.2s -page $(CURDIR)/docs/performance.md .

# Claims a second, and a restart with LOGGED tasks in the log; see
# bus-integration-task/docs/scale.md.
LOGGED ?= 100000
bench-task:
	cd bus-integration-task && go test -run '^$$' -bench Claims -benchtime 300x ./internal/soak
	cd bus-integration-task && go test -tags soak -run '^$$' -bench Restart -benchtime 1x -timeout 60m ./internal/soak -args -logged $(LOGGED)

# Run each benchmark once to check that it works, whatever its result. It installs nothing:
# the lines with the real CLIs are measured if "make agents acp-clients sdks" has run.
bench-once: build build-mcp
	$(BENCH) -quick
	@set -e; for d in $(BENCHMARKS); do echo "benchmarks of $$d"; go -C $$d test -run '^$$' -bench . -benchtime 1x . >/dev/null; done

# Run every fuzz target of every module, or only NAME, for FUZZTIME each.
FUZZTIME ?= 20s
fuzz:
	./scripts/fuzz.sh '$(FUZZTIME)' '$(NAME)'

demo:
	@echo 'Building bus-agent ...'
	@$(MAKE) -s build
	@go run ./internal/demo -bus-agent bin/bus-agent -agents '$(AGENTS)'

# A task of bus-integration-task from its event to the promoted commit.
demo-task:
	@echo 'Building bus-integration-task ...'
	@CGO_ENABLED=0 go build -C bus-integration-task -trimpath -tags $(TAGS) -o ../bin/ ./cmd/bus-integration-task
	@./scripts/install-agents.sh '$(AGENTS)' codex
	@go run -C bus-integration-task ./internal/demo -program '$(CURDIR)/bin/bus-integration-task' -codex '$(AGENTS)/node_modules/.bin/codex'

install: build build-mcp
	install -d '$(DESTDIR)$(PREFIX)/bin'
	install -m 0755 bin/bus-agent bin/bus-agent-mcp '$(DESTDIR)$(PREFIX)/bin/'

clean:
	rm -rf bin .cache
