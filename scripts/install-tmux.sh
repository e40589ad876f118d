#!/usr/bin/env bash
# Installs tmux, unless there is one, and checks that its version is 3.2 or later.
set -euo pipefail
if ! command -v tmux >/dev/null; then
	command -v apt-get >/dev/null || { echo "tmux is needed; install it" >&2; exit 1; }
	sudo=
	[ "$(id -u)" = 0 ] || sudo=sudo
	{ $sudo apt-get install -y -q tmux || { $sudo apt-get update -q && $sudo apt-get install -y -q tmux; }; } >&2
fi
version="$(tmux -V)"
oldest="$(printf '%s\n' 3.2 "${version##* }" | sort -V | head -n 1)"
[ "$oldest" = 3.2 ] || { echo "$version is too old; 3.2 or later is needed" >&2; exit 1; }
