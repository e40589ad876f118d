# syntax=docker/dockerfile:1
#
# bus-agent with git and the CLIs of Claude Code, Codex and Gemini. The context is the
# folder of a release, whose package is installed:
#
#   make release-snapshot
#   docker build --file Dockerfile --tag bus-agent dist/snapshot/artifacts
#   docker run --rm --volume "$PWD:/work" --env OPENAI_API_KEY bus-agent run "Explain this directory"

FROM node:22-bookworm-slim
ARG CLAUDE_VERSION=2.1.332
ARG CODEX_VERSION=0.171.0
ARG GEMINI_VERSION=0.61.0
ARG TARGETARCH
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git \
    && rm -rf /var/lib/apt/lists/* \
    && npm install --global --no-audit --no-fund \
        "@anthropic-ai/claude-code@${CLAUDE_VERSION}" \
        "@openai/codex@${CODEX_VERSION}" \
        "@google/gemini-cli@${GEMINI_VERSION}" \
    && npm cache clean --force
RUN --mount=type=bind,target=/artifacts \
    dpkg --install /artifacts/bus-agent_*_"${TARGETARCH}".deb
USER node
WORKDIR /work
ENTRYPOINT ["bus-agent"]
