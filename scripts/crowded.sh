#!/usr/bin/env bash
# crowded.sh COMMAND... runs a command on what looks like the machine of a heavy user: every
# variable that a program of this repository reads is set, HOME is missing, new files are
# private, TMPDIR has a space, and PATH begins with the product and all agents. These are
# stubs: no test may start one, and if a test does, this script fails and prints the call.
set -euo pipefail
for name in GOCACHE GOENV GOMODCACHE GOPATH; do export "$name=$(go env "$name")"; done # defaults are in HOME

crowd="$(mktemp -d "${TMPDIR:-/tmp}/c XXX")"
trap 'chmod -R u+w "$crowd" || true; rm -rf "$crowd" || true' EXIT
chmod 755 "$crowd" # some tests become another user
mkdir -p "$crowd/bin" "$crowd/tmp" "$crowd/repository"
chmod 777 "$crowd/tmp"

for name in bus-agent bus-agent-mcp bus-agent-rest bus-integration-task bus-preferences bus-dev bus-notes \
	agent claude cline codex codex-acp copilot cursor-agent droid gemini mine opencode pi qwen; do
	printf '#!/bin/sh\necho "$0 $*" >>"%s/started"\nexit 1\n' "$crowd" >"$crowd/bin/$name"
done
chmod 755 "$crowd/bin"/*
touch "$crowd/started"
chmod 666 "$crowd/started"
echo '{"version": 1, "values": {"bus-agent.runtime": "gemini", "bus-agent.model": "crowded-model"}}' >"$crowd/preferences.json"

# As in a hook of another repository. It has a commit, because "go build" asks for one.
if command -v git >/dev/null; then
	git -C "$crowd/repository" init -q
	git -C "$crowd/repository" -c user.name=crowded -c user.email=crowded@example.com commit -q --allow-empty -m crowded
fi
set -a
GIT_DIR="$crowd/repository/.git" GIT_WORK_TREE="$crowd/repository" GIT_INDEX_FILE="$crowd/repository/.git/index"
GIT_COMMON_DIR="$crowd/repository/.git" GIT_OBJECT_DIRECTORY="$crowd/repository/.git/objects" GIT_PREFIX=sub/
GIT_AUTHOR_NAME='A U Thor' GIT_AUTHOR_EMAIL=author@example.com GIT_AUTHOR_DATE='2001-02-03T04:05:06+07:00'
GIT_COMMITTER_NAME='C O Mitter' GIT_COMMITTER_EMAIL=committer@example.com GIT_COMMITTER_DATE='2001-02-03T04:05:06+07:00'
GIT_CONFIG_COUNT=3 GIT_CONFIG_KEY_0=init.defaultBranch GIT_CONFIG_VALUE_0=trunk GIT_CONFIG_KEY_1=commit.gpgSign GIT_CONFIG_VALUE_1=true
GIT_CONFIG_KEY_2=core.autocrlf GIT_CONFIG_VALUE_2=true GIT_CONFIG_PARAMETERS="'core.abbrev=4'"
GIT_CONFIG_GLOBAL="$crowd/gitconfig" GIT_CONFIG_SYSTEM="$crowd/gitconfig" GIT_CONFIG_NOSYSTEM=1
GIT_PROXY_COMMAND=/bin/false GIT_SSH_COMMAND=/bin/false GIT_ASKPASS=/bin/false GIT_EDITOR=/bin/false GIT_PAGER=cat GIT_TERMINAL_PROMPT=1

BUS_AGENT=gemini BUS_AGENT_ORDER=gemini,claude BUS_AGENT_ENABLE=gemini BUS_AGENT_DISABLE=codex,claude
BUS_AGENT_FALLBACK=claude,gemini BUS_AGENT_MODEL=crowded-model BUS_AGENT_MODEL_REASONING_EFFORT=high BUS_AGENT_MODEL_VERBOSITY=low
BUS_AGENT_OUTPUT_FORMAT=json BUS_AGENT_TIMEOUT=17s BUS_AGENT_USER_CONFIG=on BUS_AGENT_RECORD=on
BUS_AGENT_RUN=0123456789abcdef BUS_AGENT_RUNS_ROOT="$crowd/runs" BUS_AGENT_DELEGATION=access=full,depth=9
BUS_DEV_AGENT=gemini BUS_DEV_MODEL=crowded-model BUS_DEV_TASK_CODEX_MODEL=crowded-model BUS_RUN_AGENT=gemini
BUS_CONFIG_DIR="$crowd/config" BUS_PREFERENCES_PATH="$crowd/preferences.json"
BUS_API_TOKEN=crowded-token BUS_API_JWT_SECRET=crowded-secret BUS_NOTES_API_TOKEN=crowded-token
BUS_EVENTS_API_URL=http://127.0.0.1:9 BUS_EVENTS_TOKEN_FILE="$crowd/token" BUS_EVENTS_CLUSTER_SECRET=crowded-secret
BUS_EVENTS_LISTENER_RETRY_MIN=7s BUS_EVENTS_LISTENER_RETRY_MAX=70s
BUS_TASK_AGENT_BACKEND=gemini BUS_TASK_ALLOW_INSECURE=1 BUS_TASK_APPROVAL_TIMEOUT=7s BUS_TASK_APP_SERVER_STATE="$crowd/state"
BUS_TASK_ARGS_JSON='["crowded"]' BUS_TASK_AUTH_MODE=api-key BUS_TASK_BLOCKED_WORKTREES="$crowd/blocked" BUS_TASK_CODEX_ARGS=--crowded
BUS_TASK_CODEX_INHERIT_ENV=1 BUS_TASK_CODEX_MODEL=crowded-model BUS_TASK_COMMAND_JSON='["crowded"]' BUS_TASK_COMMIT=crowded
BUS_TASK_CREDENTIAL_REF=crowded BUS_TASK_CREDENTIAL_SOURCE_KIND=file BUS_TASK_DEPLOYMENT_SECRETS_DIR="$crowd/secrets"
BUS_TASK_EVENTS_URL=http://127.0.0.1:9 BUS_TASK_FALLBACK=claude BUS_TASK_HAND_BACK=1 BUS_TASK_LEASE=7s BUS_TASK_LOG_LEVEL=error
BUS_TASK_MAX_PARALLEL_WORKERS=7 BUS_TASK_MODEL=crowded-model BUS_TASK_ONE_WORKER_PER_RECIPIENT=1 BUS_TASK_POLICY_FILE="$crowd/policy"
BUS_TASK_READ_ONLY_DEPENDENCY_WORKTREES="$crowd/read-only" BUS_TASK_REASONING_EFFORT=high BUS_TASK_REBASE=1 BUS_TASK_RECIPIENT=crowded
BUS_TASK_REQUIRE_BUS_NOTES=1 BUS_TASK_REQUIRE_STRUCTURED_CLOSEOUT=1 BUS_TASK_RETENTION=7h BUS_TASK_SAFE_CRASH_RETRY_COUNT=7
BUS_TASK_TERMINAL_WORKTREES="$crowd/terminal" BUS_TASK_TRUSTED_DEDICATED_CONTAINER=1 BUS_TASK_UID=7 BUS_TASK_WORKER_ID=crowded
BUS_TASK_WORKER_MODE=crowded BUS_TASK_WORKER_PROFILE=crowded BUS_TASK_WORKSPACE="$crowd/workspace"
CURSOR_AGENT_MODEL=crowded-model CURSOR_AGENT_OUTPUT_FORMAT=json CURSOR_AGENT_TIMEOUT=17
GT_POLECAT=crowded GT_RIG=crowded GT_ROLE=crowded GT_ROOT="$crowd" GT_SESSION_ID=crowded GT_SESSION_ID_ENV=CLAUDE_SESSION_ID GT_WORKDIR="$crowd"
BD_ACTOR=crowded CLAUDE_SESSION_ID=crowded GEMINI_SESSION_ID=crowded
JRUN_CONDUCTOR_URL=http://127.0.0.1:9 JRUN_ID=crowded JRUN_MESSAGE_BUS="$crowd/messages" JRUN_PARENT_ID=crowded JRUN_PROJECT_ID=crowded
JRUN_RUNS_DIR="$crowd/jrun" JRUN_RUN_FOLDER="$crowd/jrun/run" JRUN_TASK_FOLDER="$crowd/jrun/task" JRUN_TASK_ID=crowded

OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:9 OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_HEADERS=crowded=1
OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:9 OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc OTEL_EXPORTER_OTLP_TIMEOUT=7
OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://127.0.0.1:9 OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=grpc OTEL_EXPORTER_OTLP_COMPRESSION=gzip
OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=http://127.0.0.1:9 OTEL_EXPORTER_OTLP_CERTIFICATE="$crowd/certificate"
OTEL_TRACES_EXPORTER=console OTEL_METRICS_EXPORTER=console OTEL_LOGS_EXPORTER=console OTEL_PROPAGATORS=b3 OTEL_SDK_DISABLED=true
OTEL_SERVICE_NAME=crowded OTEL_RESOURCE_ATTRIBUTES=crowded=1 OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY
TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 TRACESTATE=crowded=1 BAGGAGE=crowded=1

XDG_CACHE_HOME="$crowd/cache" XDG_CONFIG_HOME="$crowd/config" XDG_DATA_HOME="$crowd/data" XDG_RUNTIME_DIR="$crowd/run" XDG_STATE_HOME="$crowd/state"
LANG=tr_TR.UTF-8 TZ=Asia/Kathmandu TERM=dumb COLORTERM=truecolor COLUMNS=20 LINES=5 NO_COLOR=1 CLICOLOR_FORCE=1 FORCE_COLOR=1
TMUX="$crowd/tmux,1,0" TMUX_PANE=%0 TMUX_TMPDIR="$crowd" EDITOR=/bin/false VISUAL=/bin/false PAGER=/bin/false CDPATH="$crowd" NODE_PATH="$crowd"

ANTHROPIC_API_KEY=crowded-key ANTHROPIC_AUTH_TOKEN=crowded-key ANTHROPIC_BASE_URL=http://127.0.0.1:9 CLAUDE_CODE_OAUTH_TOKEN=crowded-key
CLAUDECODE=1 CLAUDE_CODE_ENTRYPOINT=cli CLAUDE_CODE_EFFORT_LEVEL=high CLAUDE_CONFIG_DIR="$crowd/claude" CLINE_API_KEY=crowded-key CLINE_DATA_DIR="$crowd/cline"
CODEX_API_KEY=crowded-key CODEX_HOME="$crowd/codex" CODEX_SQLITE_HOME="$crowd/codex" CODEX_SANDBOX=seatbelt COPILOT_GITHUB_TOKEN=crowded-key GITHUB_TOKEN=crowded-key
CURSOR_API_KEY=crowded-key CURSOR_AUTH_TOKEN=crowded-key DASHSCOPE_API_KEY=crowded-key FACTORY_API_KEY=crowded-key
GEMINI_API_KEY=crowded-key GEMINI_CLI=1 GEMINI_CLI_HOME="$crowd/gemini" GEMINI_CLI_TRUST_WORKSPACE=true GOOGLE_API_KEY=crowded-key GOOGLE_GENAI_USE_VERTEXAI=true
OPENAI_API_KEY=crowded-key OPENAI_BASE_URL=http://127.0.0.1:9 OPENAI_MODEL=crowded-model OPENCODE_API_KEY=crowded-key OPENCODE_PERMISSION='{"bash":"allow"}'
PERPLEXITY_API_KEY=crowded-key XAI_API_KEY=crowded-key
set +a

unset HOME
umask 077
status=0
PATH="$crowd/bin:$PATH" TMPDIR="$crowd/tmp" "$@" || status=$?
if [ -s "$crowd/started" ]; then
	echo "crowded.sh: a program of this machine was started:" >&2
	sort "$crowd/started" | uniq -c | head -20 >&2
	exit 1
fi
exit "$status"
