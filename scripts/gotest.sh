#!/usr/bin/env bash
# gotest.sh ARGS... runs "go test ARGS" and reports what was skipped, and why. It fails if no
# test ran. SLOWEST=10 in the environment also lists the ten slowest packages and tests.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
options=(-slowest "${SLOWEST:-0}")
for argument; do
	case $argument in -v) options+=(-v) ;; -args) break ;; esac
done
mkdir -p "$root/.cache"
go -C "$root" build -o .cache/testreport ./internal/testreport
go test -json "$@" | "$root/.cache/testreport" "${options[@]}"
