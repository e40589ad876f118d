#!/usr/bin/env bash
# in-memory.sh COMMAND... runs a command whose temporary files are in memory, if there is
# enough and TMPDIR is not set. Tests make and remove so many files that on a disk they take
# up to twice as long. The path is short, because the paths of sockets are limited.
set -euo pipefail
gigabyte=1048576 # in KiB
memory="$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null || true)"
if [ -n "${TMPDIR:-}" ] || [ "${memory:-0}" -lt $((12 * gigabyte)) ] || ! dir="$(mktemp -d /dev/shm/XXX 2>/dev/null)"; then
	exec "$@"
fi
trap 'chmod -R u+w "$dir" 2>/dev/null || true; rm -rf "$dir" || true' EXIT
chmod 755 "$dir" # some tests become another user
printf '#!/bin/sh\n' >"$dir/program"
chmod +x "$dir/program"
if "$dir/program" 2>/dev/null && [ "$(df --output=avail -k "$dir" | tail -n 1)" -ge $((6 * gigabyte)) ]; then
	export TMPDIR="$dir"
	unset GOTMPDIR # tests prefer it to TMPDIR
fi
"$@"
