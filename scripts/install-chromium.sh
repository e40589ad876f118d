#!/usr/bin/env bash
# Installs a headless Chromium, unless there is one, and prints its path.
set -euo pipefail
find_one() {
	for name in chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable chrome; do
		command -v "$name" && return
	done
	return 1
}
find_one || { "$(dirname "$0")/install-programs.sh" chromium-headless-shell && find_one; }
