#!/usr/bin/env bash
# install-programs.sh [PROGRAM]... installs the programs that are missing with apt; without
# arguments, all that tests can use. A test that lacks one fails in CI.
set -euo pipefail
declare -A packages=( # of Debian, where the name differs
	[chromium-headless-shell]='chromium-headless-shell fonts-dejavu-core'
	[gcc]='gcc libc6-dev'
	[git-send-email]='git-email libmailtools-perl'
	[gpg]=gnupg
	[script]=bsdutils
	[unshare]=util-linux
)
[ $# -gt 0 ] || set -- bash curl fish gcc git git-lfs git-send-email gpg mandoc python3 rpm ruby script tmux unshare zsh
PATH="$PATH:$(git --exec-path 2>/dev/null || true)" # has git-send-email
missing=()
for name in "$@"; do
	command -v "$name" >/dev/null || missing+=(${packages[$name]:-$name})
done
[ ${#missing[@]} -gt 0 ] || exit 0
command -v apt-get >/dev/null || { echo "$* is needed; install it" >&2; exit 1; }
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
install() { $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2; }
install || { $sudo apt-get update -q >&2 && install; }
