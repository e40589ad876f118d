#!/usr/bin/env bash
# install-agents.sh DIR [RUNTIME|PACKAGE@VERSION]... installs packages from npm into DIR.
# A runtime stands for its row in agents.txt; without arguments, those without "canary"
# are installed.
set -euo pipefail
dir=${1:?usage: install-agents.sh DIR [RUNTIME|PACKAGE@VERSION]...}
shift
pins="$(dirname "$0")/agents.txt"
[ $# -gt 0 ] || set -- $(awk '!/^#/ && NF == 3 { print $1 }' "$pins")
packages=() missing=no
for wanted in "$@"; do
	case $wanted in *@*) ;; *)
		runtime=$wanted
		wanted="$(awk -v runtime="$runtime" '$1 == runtime { print $2 "@" $3 }' "$pins")"
		[ -n "$wanted" ] || { echo "$runtime is not in $pins" >&2; exit 1; }
	esac
	packages+=("$wanted")
	package=${wanted%@*} version=${wanted##*@}
	installed="$(sed -n 's/^ *"version": "\(.*\)",*$/\1/p' "$dir/node_modules/$package/package.json" 2>/dev/null | head -n 1 || true)"
	[ "$installed" = "$version" ] || missing=yes
done
[ "$missing" = yes ] || exit 0
command -v npm >/dev/null || { echo "npm is needed to install ${packages[*]}" >&2; exit 1; }
echo "Installing ${packages[*]} into $dir ..." >&2
mkdir -p "$dir"
# Name all packages: npm removes the others.
npm install --prefix "$dir" --save-exact --no-audit --no-fund --loglevel=error "${packages[@]}" >&2
