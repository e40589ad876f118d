// The view of one run: what is known of it, its tool calls over time, and what was
// said and done.
function startRunView(table) {
  const list = byID("list"), view = byID("run");
  const title = document.title;
  let scrolled = 0, last = null;

  function route() {
    const [, key, query] = /^#run-([^?]*)(?:\?(.*))?$/.exec(location.hash) || [];
    let run;
    try { run = byKey.get(decodeURIComponent(key)); } catch { /* not an address of ours */ }
    if (run) {
      if (!list.hidden) scrolled = scrollY;
      view.replaceChildren(...runView(run, new URLSearchParams(query)));
      [list.hidden, view.hidden] = [true, false];
      document.title = `${run.name} – ${title}`;
      scrollTo(0, 0);
      view.querySelector("h1").focus({ preventScroll: true });
      last = run;
      return;
    }
    if (!view.hidden) {
      [list.hidden, view.hidden] = [false, true];
      view.replaceChildren();
      document.title = title;
      scrollTo(0, scrolled);
      byID("run-" + last.key)?.querySelector("a").focus({ preventScroll: true });
    }
    // The address of a section keeps the filters.
    if (location.hash.length > 1 && !location.hash.startsWith("#?")) table.remember();
    else if (location.hash.slice(1) !== listAddress.slice(1)) table.restore();
  }
  table.restore();
  addEventListener("hashchange", route);
  addEventListener("DOMContentLoaded", () => {
    table.loaded();
    route();
  });
}

function runView(run, chosen) {
  const conversation = conversationOf(run);
  const parts = [
    element("nav", { "aria-label": "Back", class: "back" }, element("a", { href: listAddress === "#" ? "#runs" : listAddress }, "← All runs")),
    element("header", { class: "top" },
      element("h1", { tabindex: -1 }, element("span", { class: "project" }, run.project + "/"), run.name),
      element("p", { class: "about" }, element("span", { class: "status " + run.status }, run.status), " ",
        element("span", {}, "run ", copied("run ID", run.id)), " ", element("span", {}, "task ", copied("task ID", run.task)))),
    failureOf(run), linkedOf(run), factsOf(run),
  ];
  if (conversation && !conversation.untimed && conversation.items.some((item) => item.tool && item.kind !== "approval")) parts.push(toolsOf(run, conversation));
  parts.push(conversationView(run, conversation, chosen), messagesOf(conversation));
  if (run.stderr && !run.failure) parts.push(element("section", { "aria-label": "Standard error" }, stderrOf(run)));
  return parts.filter(Boolean);
}

function conversationOf(run) {
  const block = byID("conversation-" + run.index);
  if (!block) return null;
  const conversation = JSON.parse(block.textContent);
  conversation.items ||= [];
  conversation.messages ||= [];
  return conversation;
}

const stderrOf = (run) => codeBlock("End of standard error", "standard error", run.stderr);

function failureOf(run) {
  if (!run.failure && !run.record_problem && !run.warnings) return null;
  const box = element("section", { class: "problems", "aria-label": "Problems" });
  const add = (state, name, text, ...more) => box.append(element("div", { class: "problem " + state }, element("strong", {}, name), element("pre", { dir: "auto" }, text), ...more));
  if (run.failure) add(run.status, run.failure_kind, run.failure, run.stderr ? stderrOf(run) : "");
  if (run.record_problem) add("", "the record is incomplete", run.record_problem);
  for (const warning of run.warnings || []) add("warning", "warning", warning);
  return box;
}

const linkedAtMost = 100;

// linkedOf is the tree of the runs that belong together: attempts at the same, and runs
// that a run has started.
function linkedOf(run) {
  const seen = new Set();
  let root = run;
  for (let up = run; up && !seen.has(up); up = above(up)) seen.add(root = up);
  const below = new Map(runs.map((one) => [one, []]));
  for (const one of [...runs].reverse()) if (one !== root) below.get(above(one))?.push(one);
  const drawn = new Set();
  let left = 0;
  const branch = (one) => {
    drawn.add(one);
    const attempt = attemptsOf(one).length;
    const words = [one.runtime, one.start_text, one.took, attempt > 1 ? `attempt ${attempt}` : ""].filter(Boolean).join(", ");
    const inner = element("ul");
    for (const next of below.get(one)) {
      if (drawn.size >= linkedAtMost) left++;
      else if (!drawn.has(next)) inner.append(branch(next));
    }
    return element("li", {}, element("span", { class: "status " + one.status }, one.status), " ",
      element("a", { href: address(one), "aria-current": one === run && "true" }, one.name), " ", element("span", { class: "sub" }, words),
      inner.firstChild && inner);
  };
  const tree = branch(root);
  const missing = [["The attempt before", run.previous], ["The run that started it", run.parent]].filter(([, id]) => id && !byRunID.has(id));
  if (drawn.size === 1 && !missing.length) return null;
  return element("section", { "aria-labelledby": "linked-title" }, element("div", { class: "title" }, element("h2", { id: "linked-title" }, "Attempts and children")),
    drawn.size > 1 ? element("ul", { class: "tree" }, tree) : "", left ? element("p", { class: "foot" }, `${thousands(left)} others are not shown.`) : "",
    ...missing.map(([name, id]) => element("p", { class: "foot" }, `${name} is not on this page: `, copied("run ID", id))));
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
  add(run.session ? "Session, of many turns" : "Session", run.session_id && copied("session ID", run.session_id));
  add("Folder", run.folder && element("code", {}, run.folder));
  const section = element("section", { "aria-label": "Facts" }, facts);
  if (run.command_line) {
    section.append(element("details", { class: "command" }, element("summary", {}, "Command line"), codeBlock("Command", "command", run.command_line)));
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

function conversationView(run, conversation, chosen) {
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
      entries.append(element("li", { class: "item gap", tabindex: -1 }, element("p", {}, `${thousands(conversation.left)} entries are left out here, because the conversation is long.`), commandLine(run)));
    }
    entries.append(itemView(item, index, subagent, conversation.untimed));
    subagent = item.subagent || "";
  });
  if (entries.querySelector("details")) {
    const button = element("button", { type: "button" }, "Open all");
    button.addEventListener("click", () => {
      const open = button.textContent === "Open all";
      for (const details of entries.querySelectorAll(".item > .body > details")) details.open = open;
      button.textContent = open ? "Close all" : "Open all";
    });
    head.append(element("p", { class: "controls" }, button));
  }
  section.append(kindsOf(run, conversation, entries, chosen), entries);
  if (!conversation.items.length) section.append(element("p", { class: "foot" }, "Nothing was said."));
  if (conversation.problem) section.append(element("div", { class: "problem warning" }, element("strong", {}, "the record could not be read to its end"), element("pre", {}, conversation.problem)));
  return section;
}

// kindsOf are the boxes that choose which kinds of entries are shown. What they hide is
// in the address.
function kindsOf(run, conversation, entries, chosen) {
  const kinds = groupsOf(conversation.items.map((item, index) => ({ name: nameOf(item), node: entries.querySelector(`#item-${index}`) })), ({ name }) => name);
  if (kinds.length < 2) return "";
  const hidden = new Set((chosen.get("hide") || "").split(",").filter((name) => kinds.some(([kind]) => kind === name)));
  const show = () => {
    for (const [name, list] of kinds) for (const { node } of list) node.hidden = hidden.has(name);
  };
  show();
  return element("fieldset", { class: "controls kinds-shown" }, element("legend", {}, "Show"), ...kinds.map(([name, list]) => {
    const box = element("input", { type: "checkbox", checked: !hidden.has(name) });
    box.addEventListener("change", () => {
      if (box.checked) hidden.delete(name);
      else hidden.add(name);
      show();
      history.replaceState(null, "", address(run) + (hidden.size ? "?" + new URLSearchParams({ hide: [...hidden].join(",") }) : ""));
    });
    return element("label", {}, box, `${name} `, element("span", { class: "sub" }, thousands(list.length)));
  }));
}

const nameOf = (item) => itemNames[item.kind] || item.kind;

// messagesOf are the messages of the task's message bus.
function messagesOf(conversation) {
  if (!conversation || !conversation.messages.length && !conversation.messages_problem) return null;
  return element("section", { class: "messages", "aria-labelledby": "messages-title" },
    element("div", { class: "title" }, element("h2", { id: "messages-title" }, "Messages"), element("p", {}, "of the run and of its task")),
    conversation.messages_problem ? element("div", { class: "problem warning" }, element("strong", {}, "the messages could not be read"), element("pre", {}, conversation.messages_problem)) : "",
    element("ol", {}, ...conversation.messages.map((message) => element("li", { class: "item" },
      element("span", { class: "at" }, message.time ? element("time", { datetime: new Date(message.time).toISOString() }, new Date(message.time).toISOString().slice(0, 19).replace("T", " ")) : ""),
      element("span", { class: "who" }, message.type), element("div", { class: "body" }, message.task ? element("p", { class: "sub" }, "to the task") : "", element("pre", { dir: "auto" }, message.text))))));
}

function commandLine(run) {
  return run.show ? element("p", { class: "foot" }, "This command shows it: ", copied("command", run.show)) : "";
}

const itemNames = {
  message: "Prompt", text: "Agent", thinking: "Thinking", tool_call: "Tool", tool_result: "Tool", plan: "Plan",
  file_change: "Files", approval: "Permission", question: "Question", retry: "Retry", warning: "Warning", result: "End of turn",
  session_started: "Session", raw: "Unknown line",
};

function itemView(item, index, before, untimed) {
  const node = element("li", { id: "item-" + index, tabindex: -1, class: `item ${item.kind}${item.failed ? " bad" : ""}${item.subagent ? " inner" : ""}` },
    element("span", { class: "at" }, untimed ? "" : offset(item.at)),
    element("span", { class: "who" }, nameOf(item)));
  const body = element("div", { class: "body" });
  if (item.subagent && item.subagent !== before) body.append(element("p", { class: "sub" }, `by an agent that ${item.subagent} started`));
  body.append(...itemBody(item, untimed));
  node.append(body);
  return node;
}

function itemBody(item, untimed) {
  switch (item.kind) {
    case "thinking":
      return [collapsed([element("span", { class: "gist" }, firstLine(item.text)), note(bytes(item.text.length))], markdown(item.text))];
    case "tool_call": case "tool_result":
      return [toolView(item, untimed)];
    case "plan":
      return [element("ul", { class: "plan" }, ...item.plan.map((step) => element("li", { class: "step " + (["completed", "in_progress"].includes(step.status) ? step.status : "pending"), dir: "auto" },
        step.text, element("span", { class: "sub" }, " " + step.status.replace("_", " ")))))];
    case "file_change":
      return [element("ul", { class: "plain" }, ...item.changes.map((change) => element("li", {}, ...changeView(change))))];
    case "approval":
      return [element("p", {}, item.failed ? "denied: " : "asked for: ", element("code", {}, item.tool || "–"), " ", item.text || ""),
        ...(item.input ? [collapsed([element("span", { class: "gist" }, gist(item.input))], ...inputView(item.input))] : [])];
    case "retry":
      return [element("p", {}, [item.attempt ? `attempt ${item.attempt}${item.max_attempts ? " of " + item.max_attempts : ""}` : "", item.failure, item.text].filter(Boolean).join(": "))];
    case "result": {
      const words = item.failure === "interrupted" ? "interrupted" : item.failed ? ["failed", item.failure].filter(Boolean).join(": ") : "";
      return [words ? element("p", {}, element("strong", {}, words)) : "", item.text ? said(item) : ""];
    }
    case "session_started":
      return [element("p", {}, element("code", {}, item.text))];
    case "raw":
      return [collapsed([element("code", { class: "gist" }, firstLine(item.text))], element("pre", {}, item.text))];
    default:
      return [said(item)];
  }
}

// said is a text with its button.
const said = (item) => element("div", { class: "said" }, markdown(item.text || ""), copyButton({ text: "answer", result: "answer", message: "prompt" }[item.kind] || "text", item.text || ""));

function changeView(change) {
  const name = [element("span", { class: "sub" }, change.action + " "), element("code", {}, change.path)];
  const rest = change.truncated ? [element("p", { class: "sub" }, "The rest of the edit is not in the record.")] : [];
  if (!change.diff) return [...name, ...rest];
  return [collapsed(name, codeBlock("Edit", "edit", change.diff, hunksView(change.diff)), ...rest)];
}

function toolView(item, untimed) {
  const state = callState(item), took = untimed || item.until === undefined || item.kind === "tool_result" ? "" : span(item.until - item.at);
  const parts = inputView(item.input || "");
  if (item.output) parts.push(codeBlock("Output", "output", item.output, isPatch(item.output) ? patchView(item.output) : null));
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
  if (!value) return [codeBlock("Input", "input", input)];
  const edit = editOf(value);
  return [...(edit ? [editBlock(edit)] : []), ...Object.entries(value).filter(([name]) => !edit?.names.includes(name)).flatMap(([name, part]) => {
    const parts = Array.isArray(part) ? part.map((one) => one && typeof one === "object" && editOf(one)) : [];
    if (parts.length && parts.every(Boolean)) return parts.map(editBlock);
    const text = typeof part === "string" ? part : Array.isArray(part) && part.some(isPatch) ? part.join("\n") : written(part);
    if (text.length <= 80 && !text.includes("\n") && !["command", "cmd"].includes(name)) return [element("p", {}, visible(name) + " ", element("code", { dir: "auto" }, text))];
    return [codeBlock(visible(name), "input", text, isPatch(text) ? patchView(text) : null)];
  })];
}

// written is a value as JSON, on one line where it is short.
function written(value) {
  const text = JSON.stringify(value);
  return text.length <= 100 ? text : JSON.stringify(value, null, 2);
}
