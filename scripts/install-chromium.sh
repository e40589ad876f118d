#!/usr/bin/env bash
# Installs a headless Chromium, unless there is one, and prints its path.
set -euo pipefail
find_one() {
	for name in chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable chrome; do
		command -v "$name" && return
	done
	return 1
}
if ! find_one; then
	command -v apt-get >/dev/null || { echo "Chromium is needed; install it" >&2; exit 1; }
	sudo=
	[ "$(id -u)" = 0 ] || sudo=sudo
	install() { $sudo apt-get install -y -q --no-install-recommends chromium-headless-shell fonts-dejavu-core >&2; }
	install || { $sudo apt-get update -q >&2 && install; }
	find_one
fi
