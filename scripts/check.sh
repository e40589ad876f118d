#!/usr/bin/env bash
# Checks the code without running agents.
set -euo pipefail
cd "$(dirname "$0")/.."
staticcheck=${1:?usage: check.sh STATICCHECK-PACKAGE ACTIONLINT-PACKAGE}
actionlint=${2:?usage: check.sh STATICCHECK-PACKAGE ACTIONLINT-PACKAGE}
modules="$(scripts/files.sh -d '*go.mod')"
examples="$(scripts/files.sh -d 'examples/*go.mod')"
sources="$(scripts/files.sh '*.go')"
workflows="$(scripts/files.sh '.github/workflows/*.yml')"
backends="$(grep -l '^//go:build !busagent_no_' backends/all/*.go | xargs -r -n1 basename -s .go)" ||
	{ echo "no backend in backends/all can be left out of a build" >&2; exit 1; }

step() { printf '== %s\n' "$*"; }

step gofmt
unformatted="$(xargs gofmt -l <<<"$sources")"
[ -z "$unformatted" ] || { printf 'not formatted:\n%s\n' "$unformatted" >&2; exit 1; }

step "workflows"
# The same everywhere: without shellcheck and pyflakes, which only some machines have.
go run "$actionlint" -shellcheck= -pyflakes= $workflows

for m in $modules; do
	step "vet, staticcheck, tidy in $m"
	(
		cd "$m"
		go vet ./...
		go run "$staticcheck" ./...
		go mod tidy -diff
	)
done
step "vet with the acceptance and soak tests"
go vet -tags acceptance,soak ./...

step "layers"
go test -count=1 ./internal/layers

step "types on other systems and with each backend alone"
# Only the types: the compiler would build the standard library for each.
mkdir -p .cache
go build -o .cache/typecheck ./internal/typecheck
typecheck="$PWD/.cache/typecheck"
export CGO_ENABLED=0
GOOS=darwin GOARCH=arm64 "$typecheck" -test ./...
for os in windows freebsd; do
	GOOS=$os "$typecheck" ./... # programs that import the library; package process starts nothing there
done
for m in bus-*/ otel; do (cd "$m" && GOOS=windows "$typecheck" ./...); done
for keep in $backends; do
	tags=urfave_cli_no_docs
	for b in $backends; do
		[ "$b" = "$keep" ] || tags="$tags,busagent_no_$b"
	done
	others="$(go list -tags "$tags" -deps ./cmd/bus-agent | grep '/bus-agent/backends/' | grep -vE '/backends/(all|more)$' | sed 's|.*/||' | tr '\n' ' ')"
	[ "$others" = "$keep " ] || { echo "a build with only $keep contains: $others" >&2; exit 1; }
	GOFLAGS="-tags=$tags" "$typecheck" ./cmd/bus-agent ./backends/all
done

step "a build with the tag rest"
others="$(go list -tags rest -deps ./cmd/bus-agent | grep -E '/backends/(openai|perplexity|xai)$' | sed 's|.*/||' | tr '\n' ' ')"
[ "$others" = "openai perplexity xai " ] || { echo "a build with the tag rest contains these of its backends: $others" >&2; exit 1; }
go vet -tags rest,hostile ./backends/all ./cmd/bus-agent

for m in $examples; do
	step "example $m"
	(cd "$m" && go test -count=1 ./...)
done
step "ok"
