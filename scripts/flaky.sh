#!/usr/bin/env bash
# flaky.sh runs every test of every module many times while all cores are kept busy,
# and stops at the first failure, whose output it keeps and names.
#
#   COUNT     how many rounds (30)
#   PKGS      which packages, as folders: "./runner ./internal/... ./otel" (all)
#   RUN       which tests, as for go test -run (all)
#   STARTERS  packages that are run without the race detector, as folders
#   JOBS      how many packages run at once (one a core)
#   LOAD      how many loops keep the cores busy (one a core)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD out=$PWD/.cache/flaky
cores=$(getconf _NPROCESSORS_ONLN)

# one ROUND DIR BINARY: one round of one package. 255 makes xargs start no more.
if [ "${1:-}" = one ]; then
	log=$out/$(basename "$4" .test).round$2.log
	cd "$3"
	if "$4" -test.count=1 -test.shuffle=on -test.timeout=30m -test.paniconexit0 -test.run "${RUN:-.}" >"$log" 2>&1 </dev/null; then
		rm -f "$log"
		exit 0
	fi
	grep -aE -A8 '^ *--- FAIL|^panic:|DATA RACE|^goroutines are left' "$log" | head -60 || true
	echo "flaky: round $2 of ${3#"$root"/} failed; all of its output is in $log" >&2
	exit 255
fi

wanted() { # DIR relative to the root: is it one of PKGS?
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

# Everything temporary is in one folder, by which what outlives its test is found; its
# name is short, because sockets have short names. It is outside the repository, in
# which bus-agent starts no agent: tests make agents of their own binaries.
TMPDIR=$(mktemp -d /tmp/fXXXX)
chmod 755 "$TMPDIR" # some tests become another user
export TMPDIR RUN="${RUN:-}"

descendants() {
	ps -eo pid=,ppid= | awk -v top=$$ '{ kids[$2] = kids[$2] " " $1 }
		function walk(p, n, a, i) { n = split(kids[p], a); for (i = 1; i <= n; i++) { print a[i]; walk(a[i]) } }
		END { walk(top) }'
	grep -lsaF -- "$TMPDIR/" /proc/[0-9]*/environ /proc/[0-9]*/cmdline | cut -d/ -f3 || true # none on darwin
}
each() { local pid; for pid in $(descendants); do kill "$1" "$pid" 2>/dev/null || true; done; }
end() {
	trap - EXIT
	trap '' INT TERM HUP
	exec 2>/dev/null # what the shell reports of processes that were killed
	each -STOP # so that none starts another one meanwhile
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
for module in $(git ls-files '*go.mod' | xargs -n1 dirname); do
	while read -r dir; do
		name=${dir#"$root"/}
		wanted "$name" || continue
		race=-race
		[ "$module" = . ] || race=
		for s in ${STARTERS:-}; do [ "$name" != "${s#./}" ] || race=; done
		binary=$TMPDIR/${name//\//-}.test
		(cd "$root/$module" && go test -c $race -o "$binary" "$dir")
		list+=("$dir" "$binary")
	done < <(cd "$root/$module" && go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' ./...)
done
[ ${#list[@]} -gt 0 ] || { echo "flaky: PKGS names no package that has tests" >&2; exit 2; }

for ((i = 0; i < ${LOAD:-$cores}; i++)); do
	# It also ends when this script is killed.
	(while kill -0 $$ 2>/dev/null; do for ((n = 0; n < 200000; n++)); do :; done; done) &
done

set -m # jobs do not ignore Ctrl-C
for ((round = 1; round <= ${COUNT:-30}; round++)); do
	begun=$SECONDS
	for ((i = 0; i < ${#list[@]}; i += 2)); do
		printf '%s\0' one "$round" "${list[i]}" "${list[i + 1]}"
	done | xargs -0 -n 4 -P "${JOBS:-$cores}" scripts/flaky.sh &
	wait $! || exit 1
	echo "flaky: round $round of ${COUNT:-30} passed after $((SECONDS - begun)) s"
done
