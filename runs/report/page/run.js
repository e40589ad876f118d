// The view of one run: what is known of it, its tool calls over time, and what was
// said and done.
function startRunView() {
  const list = byID("list"), view = byID("run");
  const title = document.title;
  let scrolled = 0, last = null;

  function route() {
    let key = null;
    if (location.hash.startsWith("#run-")) {
      try { key = decodeURIComponent(location.hash.slice(5)); } catch { key = null; }
    }
    const run = byKey.get(key);
    if (run) {
      if (!list.hidden) scrolled = scrollY;
      view.replaceChildren(...runView(run));
      [list.hidden, view.hidden] = [true, false];
      document.title = `${run.name} – ${title}`;
      scrollTo(0, 0);
      view.querySelector("h1").focus({ preventScroll: true });
      last = run;
    } else if (!view.hidden) {
      [list.hidden, view.hidden] = [false, true];
      view.replaceChildren();
      document.title = title;
      scrollTo(0, scrolled);
      byID("run-" + last.key)?.querySelector("a").focus({ preventScroll: true });
    }
  }
  addEventListener("hashchange", route);
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", route); // conversations still come
  else route();
}

function runView(run) {
  const conversation = conversationOf(run);
  const parts = [
    element("nav", { "aria-label": "Back", class: "back" }, element("a", { href: "#runs" }, "← All runs")),
    element("header", { class: "top" },
      element("h1", { tabindex: -1 }, element("span", { class: "project" }, run.project + "/"), run.name),
      element("p", { class: "about" }, element("span", { class: "status " + run.status }, run.status), " ",
        element("span", {}, "run ", element("code", {}, run.id)), " ", element("span", {}, "task ", element("code", {}, run.task)))),
    failureOf(run), attemptsOf(run), factsOf(run),
  ];
  if (conversation && !conversation.untimed && conversation.items.some((item) => item.tool && item.kind !== "approval")) parts.push(toolsOf(run, conversation));
  parts.push(conversationView(run, conversation));
  return parts.filter(Boolean);
}

function conversationOf(run) {
  const block = byID("conversation-" + run.index);
  if (!block) return null;
  const conversation = JSON.parse(block.textContent);
  conversation.items = conversation.items || [];
  return conversation;
}

function failureOf(run) {
  if (!run.failure && !run.record_problem && !run.warnings) return null;
  const box = element("section", { class: "problems", "aria-label": "Problems" });
  if (run.failure) {
    box.append(element("div", { class: "problem " + run.status }, element("strong", {}, run.failure_kind), element("pre", { dir: "auto" }, run.failure)));
  }
  if (run.record_problem) box.append(element("div", { class: "problem" }, element("strong", {}, "the record is not whole"), element("pre", { dir: "auto" }, run.record_problem)));
  for (const warning of run.warnings || []) {
    box.append(element("div", { class: "problem warning" }, element("strong", {}, "warning"), element("pre", { dir: "auto" }, warning)));
  }
  return box;
}

// attemptsOf links the runs that belong together: attempts at the same, and runs
// that a run has started.
function attemptsOf(run) {
  const rows = [];
  const add = (name, list) => {
    if (list.length) rows.push(element("dt", {}, name), element("dd", {}, ...list.flatMap((one, i) => [i ? ", " : "", one])));
  };
  const link = (id) => {
    const other = byRunID.get(id);
    if (!other) return element("span", {}, element("code", {}, id), " (not on this page)");
    return element("span", {}, element("a", { href: address(other) }, `${other.runtime}, ${other.start_text}`), ` (${other.status})`);
  };
  const linked = (field) => runs.filter((other) => other[field] === run.id && other !== run).reverse().map((other) => link(other.id));
  if (run.previous) add("Attempt before", [link(run.previous)]);
  add("Attempt after", linked("previous"));
  if (run.parent) add("Started by", [link(run.parent)]);
  const children = linked("parent");
  add("Has started", children.length > 20 ? [...children.slice(0, 20), `${children.length - 20} others`] : children);
  if (!rows.length) return null;
  return element("section", { "aria-label": "Linked runs" }, element("dl", { class: "linked" }, ...rows));
}

function factsOf(run) {
  const facts = element("dl", { class: "facts" });
  const add = (name, value, note) => {
    if (value) facts.append(element("div", {}, element("dt", {}, name), element("dd", {}, value, note ? element("span", { class: "sub" + (note.length > 12 ? " below" : "") }, " " + note) : "")));
  };
  const usage = run.usage;
  add("Runtime", run.runtime, run.version);
  add("Model", run.model);
  add("Started", run.start_text && element("time", { datetime: new Date(run.start).toISOString(), title: localTime(run) + " here" }, run.start_text + " UTC"));
  add("Duration", run.took, run.ended ? "" : "so far");
  add("Exit", run.signal || (run.ended ? String(run.exit_code) : ""));
  add("Access", run.access);
  add("Tokens", usage ? `${thousands(usage.input)} in, ${thousands(usage.output)} out` : "unknown",
    usage ? [usage.cached && `${thousands(usage.cached)} cached`, usage.reasoning && `${thousands(usage.reasoning)} reasoning`, usage.cumulative && "† of the whole session"].filter(Boolean).join(", ") : "");
  add("Cost", usage?.cost_usd === undefined ? "unknown" : "$" + usage.cost_usd.toFixed(4));
  add("Tool calls", run.tool_calls ? thousands(run.tool_calls) : "");
  add(run.session ? "Session, of many turns" : "Session", run.session_id && element("code", {}, run.session_id));
  add("Folder", run.folder && element("code", {}, run.folder));
  const section = element("section", { "aria-label": "Facts" }, facts);
  if (run.command_line) {
    section.append(element("details", { class: "command" }, element("summary", {}, "Command line"), element("pre", {}, run.command_line)));
  }
  return section;
}

// The tool calls of a run over time, a row each tool.
function toolsOf(run, conversation) {
  const chart = element("div", { class: "chart" });
  const section = element("section", { "aria-labelledby": "calls-title" },
    element("div", { class: "title" }, element("h2", { id: "calls-title" }, "Tool calls"), element("p", {}, "in the time of the run")), chart);
  whenWide(chart, () => chart.replaceChildren(callChart(run, conversation, chart.clientWidth)));
  return section;
}

function callChart(run, conversation, width) {
  const calls = conversation.items.map((item, index) => ({ item, index })).filter(({ item }) => item.tool && item.kind !== "approval");
  const last = conversation.items.reduce((end, item) => Math.max(end, item.until ?? item.at), 0);
  const to = Math.max(run.duration || 0, last, 1) * 1.01, wide = width > 640;
  const left = wide ? Math.min(180, width * 0.2) : 0, right = width - 2;
  const x = (ms) => left + ms / to * (right - left);
  const rows = new Map();
  for (const call of calls) {
    if (!rows.has(call.item.tool)) rows.set(call.item.tool, []);
    rows.get(call.item.tool).push(call);
  }
  const names = [...rows.keys()].sort((a, b) => rows.get(b).length - rows.get(a).length || (a < b ? -1 : 1));
  const words = names.map((name) => `${name}: ${rows.get(name).length}, ${rows.get(name).filter(({ item }) => item.failed).length} failed`);
  const svg = shape("svg", { role: "img", width, "aria-label": `${calls.length} tool calls over time. ${words.join("; ")}. The conversation below lists each.` });
  const axis = shape("g", { class: "axis" });
  svg.append(axis);
  let y = 22;
  for (const name of names) {
    const gap = wide ? 0 : 18, list = rows.get(name), ends = [], lane = 9;
    const bars = list.map((call) => {
      const start = x(call.item.at), end = Math.max(x(call.item.until ?? to / 1.01), start + 3);
      let n = ends.findIndex((free) => free <= start);
      if (n < 0) n = Math.min(ends.length, 11);
      ends[n] = end + 1;
      return { call, start, end, n };
    });
    const height = Math.max(ends.length * lane, wide ? 18 : lane);
    const label = shape("text", { x: wide ? 0 : 1, y: y + 12, class: "label" }, shorten(name || "–", wide ? Math.floor(left / 7.4) : 44));
    label.append(shape("tspan", { class: "sub", dx: 6 }, thousands(list.length)), shape("title", {}, name));
    svg.append(label);
    for (const { call: { item, index }, start, end, n } of bars) {
      const took = item.until === undefined ? "no result" : span(item.until - item.at);
      const rect = barOf(callState(item), start, end, y + gap + n * lane + (wide && ends.length === 1 ? 5 : 0), lane);
      rect.append(shape("title", {}, `${item.tool} ${shorten(gist(item.input), 120)}\n${offset(item.at)}, ${took}, ${callWord(item)}`));
      rect.addEventListener("click", () => reveal(byID("item-" + index)));
      svg.append(rect);
    }
    y += gap + height + 10;
    svg.append(shape("line", { class: "rule", x1: 0, x2: right, y1: y - 5.5, y2: y - 5.5 }));
  }
  const most = Math.max((right - left) / (wide ? 100 : 70), 2);
  const step = [100, 200, 500].concat(axisSteps).find((s) => to / s <= most) || axisSteps[axisSteps.length - 1];
  for (let t = 0; t <= to; t += step) {
    const at = Math.round(x(t)) + 0.5;
    axis.append(shape("line", { x1: at, x2: at, y1: 16, y2: y - 6 }));
    if (at < right - 34) axis.append(shape("text", { x: at + 4, y: 12 }, step < 1000 ? `${t / 1000} s` : offset(t)));
  }
  svg.setAttribute("height", y);
  return svg;
}

const callState = (item) => (item.failed ? "failed" : item.until === undefined ? "unknown" : "completed");

function callWord(item) {
  if (item.until === undefined && item.kind === "tool_call") return "no result";
  if (item.exit_code !== undefined && item.exit_code !== 0) return `exit ${item.exit_code}`;
  return item.failed ? "failed" : "ok";
}

function reveal(node) {
  if (!node) return;
  const details = node.querySelector("details");
  if (details) details.open = true;
  node.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  (node.querySelector("summary") || node).focus({ preventScroll: true });
}

function conversationView(run, conversation) {
  const head = element("div", { class: "title" }, element("h2", { id: "conversation-title" }, "Conversation"));
  const section = element("section", { class: "conversation", "aria-labelledby": "conversation-title" }, head);
  if (!conversation) {
    section.append(element("p", { class: "foot" }, run.large ? "It is too large for this page." : "It is not on this page."), commandLine(run));
    return section;
  }
  const entries = element("ol", { class: "items" });
  let subagent = "";
  conversation.items.forEach((item, index) => {
    if (conversation.left && index === conversation.from) {
      entries.append(element("li", { class: "item gap" }, element("p", {}, `${thousands(conversation.left)} entries are left out here, because the conversation is long.`), commandLine(run)));
    }
    entries.append(itemView(item, index, subagent, conversation.untimed));
    subagent = item.subagent || "";
  });
  if (entries.querySelector("details")) {
    const button = element("button", { type: "button" }, "Open all");
    button.addEventListener("click", () => {
      const open = button.textContent === "Open all";
      for (const details of entries.querySelectorAll("details")) details.open = open;
      button.textContent = open ? "Close all" : "Open all";
    });
    head.append(element("p", { class: "controls" }, button));
  }
  section.append(entries);
  if (!conversation.items.length) section.append(element("p", { class: "foot" }, "Nothing was said."));
  if (conversation.problem) section.append(element("div", { class: "problem warning" }, element("strong", {}, "the record could not be read to its end"), element("pre", {}, conversation.problem)));
  return section;
}

function commandLine(run) {
  return run.show ? element("p", { class: "foot" }, "This command shows it: ", element("code", {}, run.show)) : "";
}

const itemNames = {
  message: "Prompt", text: "Agent", thinking: "Thinking", tool_call: "Tool", tool_result: "Tool", plan: "Plan",
  file_change: "Files", approval: "Permission", retry: "Retry", warning: "Warning", result: "End of turn",
  session_started: "Session", raw: "Unknown line",
};

function itemView(item, index, before, untimed) {
  const node = element("li", { id: "item-" + index, class: `item ${item.kind}${item.failed ? " bad" : ""}${item.subagent ? " inner" : ""}` },
    element("span", { class: "at" }, untimed ? "" : offset(item.at)),
    element("span", { class: "who" }, itemNames[item.kind] || item.kind));
  const body = element("div", { class: "body" });
  if (item.subagent && item.subagent !== before) body.append(element("p", { class: "sub" }, `by an agent that ${item.subagent} started`));
  body.append(...itemBody(item, untimed));
  node.append(body);
  return node;
}

function itemBody(item, untimed) {
  switch (item.kind) {
    case "thinking":
      return [collapsed([element("span", { class: "gist" }, firstLine(item.text)), note(bytes(item.text.length))], prose(item.text))];
    case "tool_call": case "tool_result":
      return [toolView(item, untimed)];
    case "plan":
      return [element("ul", { class: "plan" }, ...item.plan.map((step) => element("li", { class: "step " + (["completed", "in_progress"].includes(step.status) ? step.status : "pending"), dir: "auto" },
        step.text, element("span", { class: "sub" }, " " + step.status.replace("_", " ")))))];
    case "file_change":
      return [element("ul", { class: "plain" }, ...item.changes.map((change) => element("li", {}, element("span", { class: "sub" }, change.action + " "), element("code", {}, change.path))))];
    case "approval":
      return [element("p", {}, item.failed ? "denied: " : "asked for: ", element("code", {}, item.tool || "–"), " ", item.text || ""),
        ...(item.input ? [collapsed([element("span", { class: "gist" }, gist(item.input))], ...inputView(item.input))] : [])];
    case "retry":
      return [element("p", {}, [item.attempt ? `attempt ${item.attempt}${item.max_attempts ? " of " + item.max_attempts : ""}` : "", item.failure, item.text].filter(Boolean).join(": "))];
    case "result": {
      const words = item.failure === "interrupted" ? "interrupted" : item.failed ? ["failed", item.failure].filter(Boolean).join(": ") : "";
      return [words ? element("p", {}, element("strong", {}, words)) : "", item.text ? prose(item.text) : ""];
    }
    case "session_started":
      return [element("p", {}, element("code", {}, item.text))];
    case "raw":
      return [collapsed([element("code", { class: "gist" }, firstLine(item.text))], element("pre", {}, item.text))];
    default:
      return [prose(item.text || "")];
  }
}

function toolView(item, untimed) {
  const state = callState(item), took = untimed || item.until === undefined || item.kind === "tool_result" ? "" : span(item.until - item.at);
  const parts = inputView(item.input || "");
  if (item.output) parts.push(element("h4", {}, "Output"), element("pre", { tabindex: 0, "aria-label": "Output" }, item.output));
  else if (item.until !== undefined) parts.push(element("p", { class: "sub" }, "no output"));
  return collapsed([element("strong", {}, item.tool || "–"), " ", element("code", { class: "gist" }, gist(item.input)),
    note([callWord(item) === "ok" ? "" : callWord(item), took].filter(Boolean).join(", "), state)], ...parts);
}

const note = (text, state) => element("span", { class: "note-end" + (state ? " " + state : "") }, text);

const collapsed = (summary, ...content) => element("details", {}, element("summary", {}, element("span", { class: "summary" }, ...summary)), element("div", { class: "inside" }, ...content));

const firstLine = (text) => shorten((text || "").trim().split("\n", 1)[0], 160);

function parsed(input) {
  try {
    const value = JSON.parse(input, (_, part) => (typeof part === "string" ? visible(part) : part));
    return value && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch { return null; }
}

// gist is what an input says at a glance: its first text.
function gist(input) {
  if (!input) return "";
  const value = parsed(input);
  if (!value) return firstLine(input);
  const known = ["command", "cmd", "file_path", "path", "pattern", "query", "url", "description", "prompt"].map((name) => value[name]);
  for (const candidate of [...known, ...Object.values(value)]) {
    if (Array.isArray(candidate) && candidate.length && candidate.every((word) => typeof word === "string")) return firstLine(candidate.join(" "));
    if (typeof candidate === "string" && candidate) return firstLine(candidate);
  }
  return firstLine(input === "{}" ? "" : input);
}

function inputView(input) {
  if (!input || input === "{}") return [];
  const value = parsed(input);
  if (!value) return [element("h4", {}, "Input"), element("pre", { tabindex: 0, "aria-label": "Input" }, input)];
  return Object.entries(value).flatMap(([name, part]) => [element("h4", {}, visible(name)),
    element("pre", { tabindex: 0, "aria-label": visible(name), dir: "auto" }, typeof part === "string" ? part : written(part))]);
}

// written is a value as JSON, on one line where it is short.
function written(value) {
  const text = JSON.stringify(value);
  return text.length <= 100 ? text : JSON.stringify(value, null, 2);
}

// prose shows text as it was written; what stands between fences is code.
function prose(text) {
  const box = element("div", { class: "prose", dir: "auto" });
  text.split(/^```/m).forEach((part, i) => {
    if (i % 2 === 0) {
      const words = part.replace(/^\n+|\s+$/g, "");
      if (words) box.append(element("p", {}, words));
      return;
    }
    const at = part.indexOf("\n");
    box.append(element("pre", { tabindex: 0, "aria-label": "Code" }, (at < 0 ? part : part.slice(at + 1)).replace(/\n$/, "")));
  });
  return box;
}
