// The board: all tasks at once.
function drawAll() {
  const all = [...tasks.values()];
  const asking = askingOf(all);
  announce(asking);
  if (byID("board").hidden) {
    drawOne();
    return;
  }
  const held = all.filter(holds).sort((a, b) => a.claimed - b.claimed || (a.ref < b.ref ? -1 : 1));
  drawAbout();
  drawFigures(held, asking);
  drawApprovals(byID("approvals-list"), asking.slice(0, maxAsking));
  byID("approvals-none").hidden = asking.length > 0;
  setText(byID("approvals-count"), asking.length ? thousands(asking.length) + (asking.length > maxAsking ? `, the oldest ${maxAsking} listed` : "") : "");
  drawRunning(held);
  drawQueues();
  drawWorkers(held);
  drawTasks(all);
}

function drawAbout() {
  const parts = [];
  const sum = Object.values(facts.totals).reduce((a, b) => a + b, 0);
  parts.push(plural(sum, "task"));
  if (facts.latest_at) parts.push(`latest event ${new Date(facts.latest_at).toLocaleTimeString()}`);
  setText(byID("about"), parts.join(" · "));
  const problems = [];
  if (facts.problem) problems.push(`The board cannot follow the event log: ${facts.problem}. It tries again.`);
  if (facts.unread) problems.push(`${plural(facts.unread, "reopened task")} could not be read and ${facts.unread === 1 ? "is" : "are"} not shown.`);
  if (facts.defective) problems.push(`${plural(facts.defective, "event")} ${facts.defective === 1 ? "is" : "are"} not of a task and not shown: the reference or the recipient is missing or too long.`);
  setText(byID("problem"), problems.join(" "));
  byID("problem").hidden = !problems.length;
}

function drawFigures(held, asking) {
  const n = (status) => facts.totals[status] || 0;
  const workers = new Set(held.map((task) => task.worker)).size;
  const figures = [
    ["Waiting for you", asking.length, asking.length ? `oldest ${ago(asking[0].request.at)}` : "nothing"],
    ["Running", n("running") + n("waiting"), workers ? `on ${plural(workers, "worker")}` : "idle"],
    ["Open", n("open"), `in ${plural(facts.queues.filter((q) => q.tasks.open).length, "queue")}`],
    ["Blocked", n("blocked"), n("blocked") ? "to reopen or close" : "none"],
    ["Done", n("done"), n("canceled") ? `${thousands(n("canceled"))} canceled` : "none canceled"],
    ["Failed", n("failed"), ""],
  ];
  keep(byID("figures"), figures, ([name]) => name,
    ([name]) => element("div", {}, element("dt", {}, name), element("dd"), element("dd", { class: "sub" })),
    (node, [, value, note]) => {
      setText(node.children[1], thousands(value));
      setText(node.children[2], note || "\u00a0");
    });
}

// --- Approvals

// askingOf returns the approval requests without an answer, and the tasks that wait for
// approval before a worker may start, the oldest first.
const askingOf = (all) => all.flatMap((task) => (task.status === "pending"
  ? [{ task, request: { id: "", at: task.created, text: "May a worker start this task?" } }]
  : (task.approvals || []).map((request) => ({ task, request }))))
  .sort((a, b) => a.request.at - b.request.at || (a.task.first < b.task.first ? -1 : 1));

const decisions = [["accept", "Accept"], ["accept_for_session", "Accept for session"], ["decline", "Decline"], ["cancel", "Cancel turn"]];

// movedAt is when cards last moved up: a click that was meant for another card is not
// taken.
let movedAt = -1000;
const maxAsking = 50;

function drawApprovals(list, asking) {
  const focused = list.contains(document.activeElement) && document.activeElement.closest(".ask");
  const index = focused ? [...list.children].indexOf(focused) : -1;
  const removed = keep(list, asking, ({ task, request }) => task.ref + "\n" + request.id, makeApproval, drawApproval);
  if (removed) movedAt = performance.now();
  if (focused && !list.contains(focused)) {
    const next = list.children[Math.min(index, list.children.length - 1)];
    (next ? next.querySelector("button") : list.closest("section").querySelector("h2"))?.focus({ preventScroll: true });
  }
}

function makeApproval({ task, request }) {
  const said = element("span", { class: "said", role: "status" });
  const start = task.status === "pending";
  const buttons = (start ? [["approve", "Approve task"]] : decisions).map(([decision, name], i) => {
    const button = element("button", { type: "button", class: i === 0 ? "primary" : "", "data-decision": decision }, name);
    button.setAttribute("aria-label", `${name}: ${request.text || "request"}, ${visible(task.ref)}`);
    button.addEventListener("click", (event) => {
      if (event.detail > 0 && performance.now() - movedAt < 500) {
        setText(said, "The list has just moved: click again.");
        return;
      }
      act(start ? { do: "approve", ref: task.ref } : { do: "answer", ref: task.ref, approval: request.id, decision }, buttons, said, name + ": sent");
    });
    return button;
  });
  return element("li", { class: "ask" },
    element("p", { class: "ask-head" }, element("a", { href: address(task.ref) }, task.text), " ", element("span", { class: "sub who" }), element("span", { class: "sub at" })),
    element("p", { class: "ask-text", dir: "auto" }, request.text || "The worker asks for approval."),
    request.body ? element("pre", { class: "ask-body", tabindex: 0, role: "group", "aria-label": "Request", dir: "auto" }, request.body) : "",
    element("div", { class: "buttons" }, ...buttons, said));
}

function drawApproval(node, { task, request }) {
  setText(node.querySelector(".who"), [visible(task.ref), ...(request.id ? [task.worker || "worker", "request " + visible(request.id)] : ["for " + task.recipient])].join(" · "));
  setText(node.querySelector(".at"), `${ago(request.at)} ago`);
}

// announce speaks of approvals only, and at most every five seconds.
let spoken = 0, spokenAt = 0, speaking = 0;
function announce(asking) {
  const n = asking.length;
  document.title = (n ? `(${n}) ` : "") + "Task board";
  if (n === spoken || speaking) return;
  speaking = setTimeout(() => {
    speaking = 0;
    const at = askingOf([...tasks.values()]).length;
    if (at > spoken) setText(byID("announce"), `${plural(at, "approval waits", "approvals wait")} for you`);
    spoken = at;
    spokenAt = Date.now();
  }, Math.max(1000, spokenAt + 5000 - Date.now()));
}

// --- Running turns and workers

const runningStep = 24;
let runningShown = runningStep;

function drawRunning(held) {
  const part = held.slice(0, runningShown);
  keep(byID("running-list"), part, (task) => task.ref, makeTurn, drawTurn);
  byID("running-none").hidden = held.length > 0;
  setText(byID("running-count"), held.length ? thousands(held.length) : "");
  drawMore(byID("running-more"), held.length - part.length, "running task");
}

function drawMore(node, left, what) {
  node.hidden = left <= 0;
  setText(node.firstChild, `Show more: ${plural(Math.max(0, left), what)} not listed`);
}

function makeTurn(task) {
  return element("li", { class: "turn" },
    element("p", { class: "turn-head" }, element("a", { href: address(task.ref) }), element("span", { class: "status" })),
    element("p", { class: "sub turn-about" }, element("span", { class: "who" }), element("span", { class: "at" })),
    element("div", { class: "live-text", dir: "auto" }, element("div")),
    element("p", { class: "sub lease" }, element("span", { class: "lease-bar" }, element("span")), element("span", { class: "lease-text" })));
}

function drawTurn(node, task) {
  setText(node.querySelector("a"), task.text);
  drawStatus(node.querySelector(".status"), task.status);
  setText(node.querySelector(".who"), [visible(task.ref), task.recipient, task.worker].filter(Boolean).join(" · "));
  setText(node.querySelector(".at"), ago(task.claimed));
  setText(node.querySelector(".live-text > div"), liveText(task));
  drawLease(node.querySelector(".lease"), task);
}

// liveText is the latest that was said in a turn.
function liveText(task) {
  return (task.lines || []).filter((l) => !l.stale && l.kind !== "claimed").map((l) => textOf(l)).filter(Boolean).join("\n") || "No message yet.";
}

// textOf joins summary and body of a line, once if the body begins with the summary.
const textOf = (l) => (l.body && l.text && !l.body.startsWith(l.text) ? l.text + "\n" + l.body : l.body || l.text || "");

function leaseOf(task) {
  const passed = (now() - task.renewed) / 1000;
  if (!task.lease) return { part: 0, text: `renewed ${span(passed)} ago`, late: false };
  if (passed > task.lease) return { part: 0, text: `lease ran out ${span(passed - task.lease)} ago`, late: true };
  return { part: 1 - Math.max(0, passed) / task.lease, text: `renewed ${span(passed)} ago of ${span(task.lease)}`, late: false };
}

function drawLease(node, task) {
  const lease = leaseOf(task);
  node.classList.toggle("late", lease.late);
  node.querySelector(".lease-bar > span").style.width = Math.round(lease.part * 100) + "%";
  setText(node.querySelector(".lease-text"), lease.text);
}

function drawWorkers(held) {
  const part = held.slice(0, 200).sort((a, b) => (a.worker < b.worker ? -1 : a.worker > b.worker ? 1 : a.claimed - b.claimed));
  keep(byID("workers-body"), part, (task) => task.ref, (task) => element("tr", {},
    element("th", { scope: "row" }), element("td", {}, element("a", { href: address(task.ref) }, visible(task.ref))), element("td", { class: "n" }),
    element("td", { class: "lease" }, element("span", { class: "lease-bar" }, element("span")), element("span", { class: "lease-text" }))),
  (node, task) => {
    setText(node.children[0], task.worker || "unnamed");
    setAttribute(node.children[0], "title", task.attempt && "attempt " + task.attempt);
    setText(node.children[2], ago(task.claimed));
    drawLease(node.children[3], task);
  });
  byID("workers-none").hidden = held.length > 0;
  const names = new Set(held.map((task) => task.worker)).size;
  setText(byID("workers-count"), held.length ? plural(names, "worker") + (held.length > 200 ? `, 200 of ${thousands(held.length)} claims listed` : "") : "");
  byID("workers-body").closest(".scroll").hidden = !held.length;
}

// --- Queues

function drawQueues() {
  const columns = [["open", (t) => (t.open || 0) + (t.pending || 0)], ["running", (t) => t.running], ["waiting", (t) => t.waiting], ["blocked", (t) => t.blocked], ["done", (t) => t.done], ["failed", (t) => t.failed]];
  keep(byID("queues-body"), facts.queues, (q) => q.recipient, (q) => element("tr", {},
    element("th", { scope: "row" }, q.recipient ? element("a", { href: "#?" + new URLSearchParams({ recipient: q.recipient }) }, q.recipient) : "no recipient"),
    ...columns.map(([name]) => element("td", { class: "n " + name }))),
  (node, q) => columns.forEach(([, of], i) => setText(node.children[i + 1], of(q.tasks) ? thousands(of(q.tasks)) : "")));
  const some = facts.queues.length > 0;
  byID("queues-none").hidden = some;
  byID("queues-body").closest(".scroll").hidden = !some;
  setText(byID("queues-count"), some ? thousands(facts.queues.length + (facts.others || 0)) + (facts.others ? `, the busiest ${thousands(facts.queues.length)} listed` : "") : "");
  const select = byID("filter-recipient");
  const names = [...new Set([...facts.queues.map((q) => q.recipient), filter.recipient])].filter(Boolean).sort();
  keep(select, [{ name: "", shown: "any" }, ...names.map((name) => ({ name, shown: name }))], (o) => o.name, (o) => (o.name === "" ? select.firstChild : element("option", { value: o.name }, o.shown)), () => {});
  if (select.value !== filter.recipient) select.value = filter.recipient;
}

// --- All tasks

const step = 50;
let limit = step;
const filter = { q: "", status: "", recipient: "" };

function matcher() {
  const words = filter.q.toLowerCase().split(/\s+/).filter(Boolean);
  return (task) => {
    if (filter.status && (filter.status === "live" ? ended(task) : task.status !== filter.status)) return false;
    if (filter.recipient && task.recipient !== filter.recipient) return false;
    if (!words.length) return true;
    const text = [task.ref, task.text, task.recipient, task.sender, task.worker, task.branch, task.commit, task.run, task.reason, ...(task.labels || []).map((l) => l.value)].join("\n").toLowerCase();
    return words.every((word) => text.includes(word));
  };
}

function drawTasks(all) {
  const chosen = all.filter(matcher()).sort((a, b) => (a.first < b.first ? 1 : -1));
  keep(byID("tasks-body"), chosen.slice(0, limit), (task) => task.ref, makeRow, drawRow);
  setText(byID("shown"), chosen.length === all.length ? thousands(all.length) : `${thousands(chosen.length)} of ${thousands(all.length)}`);
  byID("tasks-none").hidden = chosen.length > 0 || all.length === 0;
  byID("table").hidden = !chosen.length;
  drawMore(byID("more"), chosen.length - limit, "task");
  const left = [];
  if (facts.hidden) left.push(`${plural(facts.hidden, "open task")} beyond these ${facts.hidden === 1 ? "waits" : "wait"} too and ${facts.hidden === 1 ? "is" : "are"} listed when there is room.`);
  if (facts.forgotten) left.push(`${plural(facts.forgotten, "older ended task")} ${facts.forgotten === 1 ? "is" : "are"} counted above and not listed. This shows one: bus-integration-task task show REF`);
  setText(byID("left"), left.join(" "));
  byID("left").hidden = !left.length;
}

function makeRow(task) {
  return element("tr", {},
    element("td", { class: "c-status" }, element("span", { class: "status" })),
    element("td", { class: "c-task" }, element("a", { href: address(task.ref) }), element("span", { class: "gist" })),
    element("td", { class: "c-recipient" }), element("td", { class: "c-worker" }), element("td", { class: "n c-changed" }));
}

function drawRow(node, task) {
  drawStatus(node.querySelector(".status"), task.status);
  setText(node.querySelector("a"), task.text);
  setAttribute(node.querySelector("a"), "title", task.text);
  setText(node.querySelector(".gist"), visible(task.ref) + (task.reason ? " · " + task.reason : task.diffs ? " · with a diff" : ""));
  setText(node.querySelector(".c-recipient"), task.recipient || "");
  setText(node.querySelector(".c-worker"), task.worker || "");
  setText(node.querySelector(".c-changed"), ago(task.changed));
}

function drawStatus(node, status) {
  setText(node, status);
  setAttribute(node, "class", "status " + status);
}
