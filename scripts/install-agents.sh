#!/usr/bin/env bash
# install-agents.sh DIR PACKAGE@VERSION... installs packages from npm into DIR.
set -euo pipefail
dir=${1:?usage: install-agents.sh DIR PACKAGE@VERSION...}
shift
: "${1:?usage: install-agents.sh DIR PACKAGE@VERSION...}"
missing=no
for wanted in "$@"; do
	package=${wanted%@*} version=${wanted##*@}
	installed="$(sed -n 's/^ *"version": "\(.*\)",*$/\1/p' "$dir/node_modules/$package/package.json" 2>/dev/null | head -n 1 || true)"
	[ "$installed" = "$version" ] || missing=yes
done
[ "$missing" = yes ] || exit 0
command -v npm >/dev/null || { echo "npm is needed to install $*" >&2; exit 1; }
echo "Installing $* into $dir ..." >&2
mkdir -p "$dir"
# Name all packages: npm removes the others.
npm install --prefix "$dir" --save-exact --no-audit --no-fund --loglevel=error "$@" >&2
