#!/usr/bin/env bash
# fuzz.sh [TIME [NAME]] runs every fuzz target of every module, or only NAME, for TIME
# each. Failing inputs are stored in testdata/fuzz of the package.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-20s}
only=${2:-}
failed=
count=0
log="$(mktemp)"
trap 'rm -f "$log"' EXIT

# Go 1.26 sometimes reports the end of TIME as the failure of a target: go.dev/issue/75804,
# repaired in 1.27. The line after FAIL is then all there is, and no input is stored.
ended_by_time() {
	[ "$(grep -A 1 -E '^ *--- FAIL' "$1" | sed 1d)" = "    context deadline exceeded" ] && ! grep -q 'Failing input' "$1"
}

tests="$(scripts/files.sh '*_test.go')"
targets="$(xargs grep -H -E '^func Fuzz[A-Za-z0-9_]*\(f \*testing\.F\)' <<<"$tests")" ||
	{ echo "no fuzz targets in the repository" >&2; exit 1; }
while IFS=: read -r file line; do
	name="$(sed -E 's/^func (Fuzz[A-Za-z0-9_]*).*/\1/' <<<"$line")"
	[ -z "$only" ] || [ "$only" = "$name" ] || continue
	package="$(dirname "$file")"
	printf '== %s in %s\n' "$name" "$package"
	count=$((count + 1))
	if (cd "$package" && go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 5s .) >"$log" 2>&1; then
		cat "$log"
	elif ended_by_time "$log"; then
		sed -E '/^ *--- FAIL/,$d' "$log"
		echo "ended by time"
	else
		cat "$log"
		failed="$failed $package:$name"
	fi
done <<<"$targets"
[ "$count" -gt 0 ] || { echo "no fuzz target $only" >&2; exit 1; }
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
echo "== $count fuzz targets passed"
