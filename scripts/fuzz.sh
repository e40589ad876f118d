#!/usr/bin/env bash
# fuzz.sh [TIME [NAME]] runs every fuzz target of every module, or only NAME, for TIME
# each. Failing inputs are stored in testdata/fuzz of the package.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-20s}
only=${2:-}
failed=
count=0
while IFS=: read -r file line; do
	name="$(sed -E 's/^func (Fuzz[A-Za-z0-9_]*).*/\1/' <<<"$line")"
	[ -z "$only" ] || [ "$only" = "$name" ] || continue
	package="$(dirname "$file")"
	printf '== %s in %s\n' "$name" "$package"
	count=$((count + 1))
	(cd "$package" && go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" .) || failed="$failed $package:$name"
done < <(git ls-files '*_test.go' | xargs grep -H -E '^func Fuzz[A-Za-z0-9_]*\(f \*testing\.F\)')
[ "$count" -gt 0 ] || { echo "no fuzz target $only" >&2; exit 1; }
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
echo "== $count fuzz targets passed"
