#!/usr/bin/env bash
# files.sh [-d] PATTERN... prints the files of the repository that match, or with -d their
# folders. It fails if there is none, so that no check passes because it found nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
folders=no
[ "${1:-}" != -d ] || { folders=yes; shift; }
files="$(git ls-files -- "${@:?usage: files.sh [-d] PATTERN...}" 2>/dev/null || true)"
[ -n "$files" ] || { echo "no files $* in the repository; run this in a git checkout" >&2; exit 1; }
if [ "$folders" = yes ]; then
	sed -E 's|^[^/]*$|./&|; s|/[^/]*$||' <<<"$files" | sort -u
else
	printf '%s\n' "$files"
fi
