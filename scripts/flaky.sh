#!/usr/bin/env bash
# flaky.sh runs every test of every module many times while all cores are busy. It stops
# at the first failure and prints the path of its output. It does not use the race detector,
# with which a round takes twice as long.
#
#   COUNT  number of rounds (30)
#   PKGS   packages to test, as folders: "./runner ./internal/... ./otel" (all)
#   RUN    tests to run, as for go test -run (all)
#   JOBS   number of packages to test at once (two per core)
#   LOAD   number of busy loops (one per core)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD out=$PWD/.cache/flaky
cores=$(getconf _NPROCESSORS_ONLN)

# one ROUND DIR BINARY: one round of one package. Status 255 makes xargs stop.
if [ "${1:-}" = one ]; then
	log=$out/$(basename "$4" .test).round$2.log
	cd "$3"
	if "$4" -test.count=1 -test.shuffle=on -test.timeout=10m -test.paniconexit0 -test.run "${RUN:-.}" >"$log" 2>&1 </dev/null; then
		rm -f "$log"
		exit 0
	fi
	grep -aE -A8 '^ *--- FAIL|^panic:|DATA RACE|^goroutines are left' "$log" | head -60 || true
	echo "flaky: round $2 of ${3#"$root"/} failed; output in $log" >&2
	exit 255
fi

wanted() { # DIR, relative to the root: reports whether it is in PKGS
	[ -n "${PKGS:-}" ] || return 0
	local p
	for p in $PKGS; do
		p=${p#./}
		case $p in
		...) return 0 ;;
		*/...) case $1/ in "${p%...}"*) return 0 ;; esac ;;
		*) [ "$1" = "${p%/}" ] && return 0 ;;
		esac
	done
	return 1
}

# All temporary files are in one new folder, whose path identifies processes that outlive
# their test: never a folder that others use, because these are killed. It is short, because
# the paths of sockets are limited, and outside the repository, because bus-agent does not
# start agents from there and tests use their own binaries as agents.
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/XXX")
chmod 755 "$TMPDIR" # some tests become another user
export TMPDIR RUN="${RUN:-}"

descendants() {
	ps -eo pid=,ppid= | awk -v top=$$ '{ kids[$2] = kids[$2] " " $1 }
		function walk(p, n, a, i) { n = split(kids[p], a); for (i = 1; i <= n; i++) { print a[i]; walk(a[i]) } }
		END { walk(top) }'
	grep -lsaF -- "$TMPDIR/" /proc/[0-9]*/environ /proc/[0-9]*/cmdline | cut -d/ -f3 || true # not on darwin
}
each() { local pid; for pid in $(descendants); do kill "$1" "$pid" 2>/dev/null || true; done; }
end() {
	trap - EXIT
	trap '' INT TERM HUP
	exec 2>/dev/null # the shell's messages about killed processes
	each -STOP # so that they cannot start others
	each -KILL
	wait 2>/dev/null || true
	rm -rf "$TMPDIR"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

mkdir -p "$out"
rm -f "$out"/*
list=()
first=${RUN%%/*} # of the regexps for tests, subtests, ...
modules="$(scripts/files.sh -d '*go.mod')"
for module in $modules; do
	dirs="$(cd "$root/$module" && go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' ./...)"
	while read -r dir; do
		[ -n "$dir" ] || continue
		name=${dir#"$root"/}
		wanted "$name" || continue
		binary=$TMPDIR/${name//\//-}.test
		(cd "$root/$module" && go test -c -o "$binary" "$dir")
		tests="$(cd "$dir" && "$binary" -test.list "${first:-.}" </dev/null)"
		grep -qE '^(Test|Example|Fuzz)' <<<"$tests" || continue
		list+=("$dir" "$binary")
	done <<<"$dirs"
done
[ ${#list[@]} -gt 0 ] || { echo "flaky: PKGS and RUN select no test" >&2; exit 2; }

for ((i = 0; i < ${LOAD:-$cores}; i++)); do
	# End with this script, even if it is killed.
	(while kill -0 $$ 2>/dev/null; do for ((n = 0; n < 200000; n++)); do :; done; done) &
done

set -m # or background jobs ignore Ctrl-C
for ((round = 1; round <= ${COUNT:-30}; round++)); do
	begun=$SECONDS
	for ((i = 0; i < ${#list[@]}; i += 2)); do
		printf '%s\0' one "$round" "${list[i]}" "${list[i + 1]}"
	done | xargs -0 -n 4 -P "${JOBS:-$((2 * cores))}" scripts/flaky.sh &
	wait $! || exit 1
	echo "flaky: round $round of ${COUNT:-30} passed after $((SECONDS - begun)) s"
done
