#!/usr/bin/env bash
# Installs rpm and ruby where they are missing. Tests of releases unpack packages and read
# formulas with them.
set -euo pipefail
missing=()
for name in rpm ruby; do
	command -v "$name" >/dev/null || missing+=("$name")
done
[ ${#missing[@]} -gt 0 ] || exit 0
command -v apt-get >/dev/null || { echo "${missing[*]} is needed; install it" >&2; exit 1; }
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
install() { $sudo apt-get install -y -q --no-install-recommends "${missing[@]}" >&2; }
install || { $sudo apt-get update -q >&2 && install; }
