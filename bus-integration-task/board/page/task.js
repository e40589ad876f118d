// One task: what can be done with it, its result and its conversation.
const one = { ref: "" };

function openOne(ref) {
  if (one.ref === ref) return;
  focusRef = address(ref);
  Object.assign(one, { ref, task: tasks.get(ref) || null, lines: [], skipped: 0, result: null, problem: "", loading: false, loaded: -1, askedAt: -1e9, parts: null });
  byID("board").hidden = true;
  byID("one").hidden = false;
  makeOne();
  loadOne();
  drawOne();
  scrollTo(0, 0);
  one.parts.title.focus({ preventScroll: true });
}

function closeOne() {
  one.ref = "";
  byID("one").replaceChildren();
  byID("one").hidden = true;
  byID("board").hidden = false;
}

// loadOne reads the whole task. Lines that arrive later come with the stream.
async function loadOne() {
  if (one.loading || performance.now() - one.askedAt < 1000) return; // the next tick asks again
  const ref = one.ref;
  one.askedAt = performance.now();
  one.loading = true;
  try {
    const response = await fetch("task?" + new URLSearchParams({ ref }));
    const got = await response.json();
    if (one.ref !== ref) return;
    one.problem = response.ok ? "" : got.error;
    if (response.ok) {
      one.loaded = got.task.count;
      one.lines = got.lines || [];
      one.skipped = got.skipped || 0;
      one.result = got.result || null;
      if (!one.task || got.task.count >= one.task.count) one.task = got.task;
    }
  } catch {
    if (one.ref === ref) one.problem = "The board cannot be reached.";
  } finally {
    if (one.ref === ref) one.loading = false;
  }
  if (one.ref === ref) drawOne();
}

function makeOne() {
  const main = byID("one");
  const title = element("h1", { tabindex: -1, dir: "auto" });
  const about = element("p", { class: "about" }, element("span", { class: "status" }), ...["ref", "recipient", "sender", "times"].map((name) => element("span", { class: name })));
  const problem = element("p", { class: "note", hidden: true });
  const reason = element("p", { class: "problem", dir: "auto", hidden: true });
  const turn = element("p", { class: "sub lease", hidden: true }, element("span", { class: "lease-bar" }, element("span")), element("span", { class: "lease-text" }));
  const asks = element("ul", { class: "asks" });
  const asked = element("section", { "aria-labelledby": "one-asks" }, element("div", { class: "title" }, element("h2", { id: "one-asks", tabindex: -1 }, "Waiting for you")), asks);
  const list = element("dl", { class: "facts" });
  const result = element("section", { "aria-labelledby": "one-result", hidden: true }, element("div", { class: "title" }, element("h2", { id: "one-result" }, "Result")), element("div"));
  const talk = element("ol", { class: "items" });
  const skipped = element("p", { class: "foot", hidden: true });
  const talkCount = element("p");
  main.replaceChildren(
    element("p", { class: "back" }, element("a", { href: backTo || "#" }, "All tasks")),
    element("header", {}, title, about, turn), problem, reason, asked, makeActions(),
    element("section", { "aria-label": "Facts" }, list), result,
    element("section", { "aria-labelledby": "one-talk" }, element("div", { class: "title" }, element("h2", { id: "one-talk" }, "Conversation"), talkCount), skipped, talk));
  one.parts = { title, about, problem, reason, turn, asks, asked, list, result, talk, skipped, talkCount, actions: main.querySelector(".actions"), shownResult: "" };
}

// makeActions makes what a user can do with a task: say, cancel and reopen.
function makeActions() {
  const said = element("p", { class: "said", role: "status" });
  const text = element("textarea", { id: "say-text", rows: 3, dir: "auto" });
  const send = element("button", { type: "button", class: "primary say" }, "Send");
  const reopen = element("button", { type: "button", class: "primary reopen", hidden: true }, "Reopen with this message");
  const cancel = element("button", { type: "button", class: "cancel" }, "Cancel task …");
  const sure = element("button", { type: "button", class: "danger sure", hidden: true }, "Cancel it now");
  const no = element("button", { type: "button", class: "no", hidden: true }, "Keep it");
  const all = [send, reopen, cancel, sure, no];
  const ask = (open) => {
    cancel.dataset.open = open ? "yes" : "";
    drawOne();
    (open ? sure : cancel).focus();
  };
  const run = async (action, success) => {
    if (await act(action, all, said, success)) text.value = "";
  };
  send.addEventListener("click", () => run({ do: "say", ref: one.ref, text: text.value }, "Sent"));
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !send.hidden) send.click();
  });
  reopen.addEventListener("click", () => run({ do: "reopen", ref: one.ref, text: text.value }, "Reopened"));
  cancel.addEventListener("click", () => ask(true));
  no.addEventListener("click", () => ask(false));
  sure.addEventListener("click", async () => {
    await run({ do: "cancel", ref: one.ref, text: text.value }, "Canceled");
    cancel.dataset.open = "";
    drawOne();
  });
  return element("section", { class: "actions", "aria-label": "Actions" },
    element("label", { for: "say-text" }, "Message"), text, element("div", { class: "buttons" }, send, reopen, cancel, sure, no), said);
}

function drawOne() {
  if (!one.ref) return;
  const fresh = tasks.get(one.ref);
  if (fresh && (!one.task || fresh.count >= one.task.count)) one.task = fresh;
  const { task, parts } = one;
  setText(parts.problem, one.problem);
  parts.problem.hidden = !one.problem;
  parts.actions.hidden = !task;
  if (!task) {
    setText(parts.title, visible(one.ref));
    parts.asked.hidden = true;
    return;
  }
  setText(parts.title, task.text);
  drawStatus(parts.about.querySelector(".status"), task.status);
  setText(parts.about.querySelector(".ref"), visible(task.ref));
  setText(parts.about.querySelector(".recipient"), task.recipient ? "for " + task.recipient : "for nobody");
  setText(parts.about.querySelector(".sender"), task.sender ? "from " + task.sender : "");
  setText(parts.about.querySelector(".times"), `created ${new Date(task.created).toLocaleString()}`);
  parts.turn.hidden = !holds(task);
  if (holds(task)) drawLease(parts.turn, task);
  setText(parts.reason, task.reason || "");
  parts.reason.hidden = !task.reason;
  setAttribute(parts.reason, "class", "problem " + task.status);
  const asking = askingOf([task]);
  drawApprovals(parts.asks, asking);
  parts.asked.hidden = !asking.length;
  drawActions(parts.actions, task);
  drawFacts(parts.list, task);
  drawResult(parts.result);
  addLines(task);
  drawTalk();
}

function drawActions(node, task) {
  const show = (name, is) => { node.querySelector("." + name).hidden = !is; };
  const asking = node.querySelector(".cancel").dataset.open === "yes";
  show("say", !ended(task));
  show("reopen", ended(task));
  show("cancel", !ended(task) && !asking);
  show("sure", !ended(task) && asking);
  show("no", !ended(task) && asking);
}

function drawFacts(list, task) {
  const all = [["worker", task.worker], ["attempt", task.attempt], ["round", task.round > 1 ? String(task.round) : ""], ["branch", task.branch], ["commit", task.commit], ["run record", task.run], ["thread", task.thread], ...(task.labels || []).map((l) => [l.name, l.value])];
  keep(list, all.filter(([, value]) => value), ([name]) => name,
    ([name]) => element("div", {}, element("dt", {}, name), element("dd", {}, element("code"))),
    (node, [, value]) => setText(node.querySelector("code"), value));
}

function drawResult(section) {
  const shown = JSON.stringify(one.result);
  if (shown === one.parts.shownResult) return;
  one.parts.shownResult = shown;
  section.hidden = !one.result;
  const { files = [], left = 0, closeout, evidence } = one.result || {};
  section.lastChild.replaceChildren(
    ...files.map((file) => (file.diff && !file.why ? diffBlock(file) : element("p", { class: "file" }, element("code", {}, file.path || "unnamed"), ` ${[file.media, bytes(file.size), file.why && "not shown: " + file.why].filter(Boolean).join(", ")}`))),
    ...(left ? [element("p", { class: "foot" }, `${plural(left, "other attachment")} not listed.`)] : []),
    ...[["Closeout", closeout], ["Evidence", evidence]].filter(([, text]) => text).map(([name, text]) => lazy(name, "", () => element("pre", { tabindex: 0, role: "group", "aria-label": name }, text))));
}

// lazy is a collapsed block whose content is made when it is first opened.
function lazy(name, note, make) {
  const node = element("details", { class: "block" }, element("summary", {}, element("span", {}, name), " ", element("span", { class: "sub" }, note)));
  node.addEventListener("toggle", () => node.append(make()), { once: true });
  return node;
}

function diffBlock(file) {
  const lines = file.text.replace(/\n$/, "").split("\n");
  const sign = (line) => (/^(\+\+\+|---)( |$)/.test(line) ? "" : line[0] === "+" || line[0] === "-" ? line[0] : "");
  const count = (wanted) => lines.filter((line) => sign(line) === wanted).length;
  const note = [`+${thousands(count("+"))} −${thousands(count("-"))}`, bytes(file.size || file.text.length), file.cut && "cut here"].filter(Boolean).join(", ");
  return lazy(file.path || "Diff", note, () => {
    const pre = element("pre", { class: "diff", tabindex: 0, role: "group", "aria-label": "Diff" });
    for (const line of lines) {
      const s = sign(line);
      pre.append(s === "+" ? element("ins", {}, line + "\n") : s === "-" ? element("del", {}, line + "\n") : /^(@@|diff )/.test(line) ? element("span", { class: "hunk" }, line + "\n") : line + "\n");
    }
    if (file.cut) pre.append(element("span", { class: "hunk" }, "… the rest is not shown"));
    return pre;
  });
}

// addLines appends what the stream has brought, and reads the task again when lines or
// the result are missing.
function addLines(task) {
  if (one.loaded < 0 || one.loaded >= task.count) return;
  const last = one.lines.length ? one.lines[one.lines.length - 1].id : "";
  const added = (task.lines || []).filter((l) => l.id > last);
  if (added.length === task.count - one.loaded && !ended(task)) {
    one.lines.push(...added);
    one.loaded = task.count;
    if (one.lines.length > 1200) one.skipped += one.lines.splice(0, one.lines.length - 1000).length;
  } else loadOne();
}

function drawTalk() {
  keep(one.parts.talk, one.lines, (l) => l.id, (l) => element("li", { class: "item " + kindOf(l), tabindex: -1 },
    element("time", { class: "at", datetime: new Date(l.at).toISOString() }, new Date(l.at).toLocaleTimeString()),
    element("span", { class: "who" }, l.who || "", element("span", { class: "kind" }, l.kind.replaceAll(".", " "))),
    element("div", { class: "body", dir: "auto" }, element("p", {}, textOf(l)), l.stale ? element("p", { class: "sub" }, "No effect: " + l.stale + ".") : "")), () => {});
  setText(one.parts.talkCount, thousands(one.lines.length + one.skipped));
  one.parts.skipped.hidden = !one.skipped;
  setText(one.parts.skipped, one.skipped ? `${plural(one.skipped, "older entry", "older entries")} not shown.` : "");
}

const kindOf = (l) => l.kind.replace(/[^a-z]/g, "-") + (l.stale ? " stale" : "");
