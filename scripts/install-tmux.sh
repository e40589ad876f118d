#!/usr/bin/env bash
# Installs tmux, unless there is one, and checks that its version is 3.2 or later.
set -euo pipefail
"$(dirname "$0")/install-programs.sh" tmux
version="$(tmux -V)"
oldest="$(printf '%s\n' 3.2 "${version##* }" | sort -V | head -n 1)"
[ "$oldest" = 3.2 ] || { echo "$version is too old; 3.2 or later is needed" >&2; exit 1; }
