#!/usr/bin/env bash
# fuzz.sh [TIME [NAME]] runs every fuzz target of every module, or only NAME, for TIME
# each. Failing inputs are stored in testdata/fuzz of the package. The targets of a package
# run one after another, and as many packages at once as there are cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Go 1.26 sometimes reports the end of TIME as the failure of a target: go.dev/issue/75804,
# repaired in 1.27. The line after FAIL is then all there is, and no input is stored.
ended_by_time() {
	[ "$(grep -A 1 -E '^ *--- FAIL' "$1" | sed 1d)" = "    context deadline exceeded" ] && ! grep -q 'Failing input' "$1"
}

# package DIR TIME NAME...: builds a package once and runs its targets.
if [ "${1:-}" = package ]; then
	package=$2 time=$3 status=0
	dir="$(mktemp -d)"
	trap 'rm -rf "$dir"' EXIT
	cd "$package"
	go test -c -vet=off -ldflags=-w -fuzz . -o "$dir/test" . >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
	for name in "${@:4}"; do
		if "$dir/test" -test.run '^$' -test.paniconexit0 -test.fuzz "^$name\$" -test.fuzztime "$time" -test.fuzzminimizetime 5s \
			-test.parallel 1 -test.fuzzcachedir "$(go env GOCACHE)/fuzz/$package" >"$dir/log" 2>&1; then
			result=passed
		elif ended_by_time "$dir/log"; then
			result='ended by time'
		else
			result=FAILED status=1
		fi
		printf '== %s in %s %s\n%s\n' "$name" "$package" "$result" "$(cat "$dir/log")"
	done
	exit "$status"
fi

tests="$(scripts/files.sh '*_test.go')"
targets="$(xargs grep -H -E "^func ${2:-Fuzz[A-Za-z0-9_]*}\(f \*testing\.F\)" <<<"$tests" | sed -E 's|/[^/]*:func ([A-Za-z0-9_]+).*| \1|')" ||
	{ echo "no fuzz target ${2:-in the repository}" >&2; exit 1; }
awk -v "time=${1:-20s}" '{ names[$1] = names[$1] " " $2 } END { for (dir in names) print "package", dir, time names[dir] }' <<<"$targets" |
	xargs -P "$(getconf _NPROCESSORS_ONLN)" -L 1 "${BASH_SOURCE[0]}"
echo "== $(wc -l <<<"$targets") fuzz targets passed"
