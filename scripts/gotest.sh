#!/usr/bin/env bash
# gotest.sh ARGS... runs "go test ARGS", and fails if -run selects no test.
set -euo pipefail
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
go test "$@" 2>&1 | tee "$log"
awk '/^ok / && !/no tests to run/ { ran = 1 } END { exit !ran }' "$log" || { echo "no test ran: go test $*" >&2; exit 1; }
