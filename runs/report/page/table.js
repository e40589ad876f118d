// The list of runs: filters, which also choose what the timeline and the sums show, order,
// and a part of the rows at a time. What is chosen is in the address of the page.
const pageOfRows = 50;

// attemptsOf returns a run and the attempts at the same before it.
const attemptsAtMost = 100;

function attemptsOf(run) {
  const all = new Set();
  for (let one = run; one && !all.has(one) && all.size < attemptsAtMost; one = byRunID.get(one.previous)) all.add(one);
  return [...all];
}

// above is the run below which a run is in the tree: the first attempt at the same or,
// of a first attempt, the run that started it.
function above(run) {
  const first = attemptsOf(run).pop();
  if (first !== run) return first;
  const parent = byRunID.get(run.parent);
  return parent !== run ? parent : undefined;
}

// treeOf returns a list of runs as trees, each where its first run is in the list, with
// the depth of each run.
function treeOf(list) {
  const within = new Set(list), below = new Map(list.map((run) => [run, []])), tops = new Map(), done = new Set(), out = [];
  for (const run of list) {
    const passed = new Set([run]);
    let up = above(run);
    while (up && !within.has(up) && !passed.has(up)) { passed.add(up); up = above(up); }
    if (up && within.has(up) && up !== run) {
      tops.set(run, up);
      below.get(up).push(run);
    }
  }
  for (const run of list) {
    let top = run;
    const passed = new Set(); // runs may name each other as their parents
    while (tops.has(top) && !passed.has(top)) { passed.add(top); top = tops.get(top); }
    for (const open = [[top, 0]]; open.length;) {
      const [one, depth] = open.pop();
      if (done.has(one)) continue;
      done.add(one);
      out.push({ run: one, depth });
      open.push(...below.get(one).map((next) => [next, depth + 1]).reverse());
    }
  }
  return out;
}

// The filters, and the rows and what else follows them.
let listAddress = "#"; // that of the list as it is filtered
const reasons = new Map(); // of failures

function startTable() {
  const body = byID("table").tBodies[0], filter = byID("filter"), controls = byID("time-controls");
  const rows = [...body.rows];
  let order = runs.map((_, index) => index), sorted = "start", descending = true, limit = pageOfRows;

  runs.forEach((run, index) => {
    reasons.set(run, rows[index].querySelector(".reason")?.textContent || "");
    const attempt = attemptsOf(run).length;
    if (attempt > 1) rows[index].querySelector(".c-task a").append(element("span", { class: "sub" }, ` attempt ${attempt}`));
  });

  // The words of a run are read when they are first searched.
  const words = [];
  const wordsOf = (index) => (words[index] ??= [rows[index].querySelector(".prompt")?.textContent,
    ...["task", "project", "id", "runtime", "model", "failure_kind", "failure", "stderr", "session_id", "start_text"].map((field) => runs[index][field]),
    ...textsOf(conversationOf(runs[index]))].join("\n").toLowerCase());

  const fields = ["status", "runtime", "model", "project"];
  for (const field of fields) {
    const select = byID("filter-" + field);
    for (const value of [...new Set(runs.map((run) => run[field] || ""))].sort()) {
      if (value) select.append(element("option", { value }, value));
    }
    if (select.options.length < 3) select.parentNode.hidden = true;
  }

  function matching() {
    const wanted = byID("filter-text").value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = fields.map((field) => [field, byID("filter-" + field).value]).filter(([, value]) => value);
    return order.filter((index) => chosen.every(([field, value]) => runs[index][field] === value) &&
      wanted.every((word) => wordsOf(index).includes(word)));
  }

  function show() {
    const found = matching(), list = found.map((index) => runs[index]);
    const visible = (sorted === "start" ? treeOf(list) : list.map((run) => ({ run, depth: 0 }))).slice(0, limit);
    body.replaceChildren(...visible.map(({ run, depth }) => {
      const row = rows[run.index];
      if (depth) row.dataset.depth = Math.min(depth, 4);
      else delete row.dataset.depth;
      return row;
    }));
    if (!found.length) {
      body.append(element("tr", { class: "nothing" }, element("td", { colspan: 9 }, "No run matches. Clear the filters to see all.")));
    }
    byID("shown").textContent = found.length === runs.length ? thousands(runs.length)
      : `${thousands(found.length)} of ${thousands(runs.length)}`;
    const left = found.length - visible.length;
    byID("more").hidden = !left;
    byID("more").firstElementChild.textContent = left > pageOfRows * 5
      ? `Show ${pageOfRows * 5} more of ${thousands(left)}` : `Show the other ${thousands(left)}`;
    return found;
  }

  // update shows what is chosen, all of it if the choice of runs has changed.
  let before = runs.length;
  function update() {
    limit = pageOfRows;
    const found = show(), list = [...found].sort((a, b) => a - b).map((index) => runs[index]);
    if (found.length < runs.length || before < runs.length) showSums(list);
    before = found.length;
    showTimeline(list);
  }

  const values = {
    start: (run) => run.start || 0, status: (run) => run.status, task: (run) => run.project + "/" + run.name,
    runtime: (run) => `${run.runtime} ${run.model || ""}`, duration: (run) => run.duration ?? -1,
    input: (run) => run.usage?.input ?? -1, output: (run) => run.usage?.output ?? -1,
    cost: (run) => run.usage?.cost_usd ?? -1, tools: (run) => run.tool_calls || 0,
  };

  function sort(column, down) {
    [sorted, descending] = [column, down];
    const value = values[column], sign = down ? -1 : 1;
    order.sort((a, b) => {
      const x = value(runs[a]), y = value(runs[b]);
      return (x < y ? -sign : x > y ? sign : 0) || a - b;
    });
    for (const header of headers) {
      const own = header.dataset.sort === column;
      if (own) header.setAttribute("aria-sort", down ? "descending" : "ascending");
      else header.removeAttribute("aria-sort");
    }
    byID("filter-order").value = `${column} ${down ? "down" : "up"}`;
  }

  // A narrow page shows no headers: the order is chosen in the filters there too.
  const select = element("select", { id: "filter-order", name: "order" });
  const headers = [...byID("table").tHead.rows[0].cells];
  for (const header of headers) {
    const column = header.dataset.sort, name = header.textContent;
    const button = element("button", { type: "button" }, name);
    button.addEventListener("click", () => {
      const numbers = header.classList.contains("n") || column === "start";
      sort(column, sorted === column ? !descending : numbers);
      remember();
      show();
    });
    header.replaceChildren(button);
    select.append(element("option", { value: column + " down" }, `${name} ↓`), element("option", { value: column + " up" }, `${name} ↑`));
  }
  filter.insertBefore(element("label", { class: "order" }, "Order ", select), filter.querySelector("button"));

  // remember puts what is chosen into the address, restore reads it from there.
  const named = [...filter.elements, ...controls.elements].filter((control) => control.name);
  const initial = (control) => (control === select ? "start down" : control.options ? control.options[0].value : "");
  function remember() {
    const chosen = new URLSearchParams();
    for (const control of named) if (control.value !== initial(control)) chosen.set(control.name, control.value);
    listAddress = chosen.size ? "#?" + chosen : "#";
    history.replaceState(null, "", listAddress);
  }
  function restore() {
    const from = location.hash.startsWith("#?") ? location.hash : "#";
    const chosen = new URLSearchParams(from.slice(2));
    for (const control of named) {
      const value = chosen.get(control.name) ?? initial(control);
      control.value = value;
      if (control.value === value) continue;
      if (control === select || control.form === controls) {
        control.value = initial(control);
      } else { // no run here has it, so that none matches
        control.append(element("option", { value }, value));
        control.value = value;
        control.parentNode.hidden = false;
      }
    }
    listAddress = from;
    sort(select.value.split(" ")[0], select.value.endsWith("down"));
    update();
  }

  let waiting = false;
  function changed() {
    sort(select.value.split(" ")[0], select.value.endsWith("down"));
    remember();
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; update(); });
  }
  filter.addEventListener("submit", (event) => event.preventDefault());
  for (const form of [filter, controls]) form.addEventListener("input", changed);
  filter.addEventListener("reset", () => setTimeout(() => { select.value = "start down"; changed(); }));
  byID("more").firstElementChild.addEventListener("click", () => {
    const shown = body.rows.length;
    limit += pageOfRows * 5;
    show();
    body.rows[shown]?.querySelector("a").focus({ preventScroll: true });
  });
  for (const code of document.querySelectorAll("#runs .foot code")) code.after(" ", copyButton("command", code.textContent));
  filter.hidden = false;
  body.classList.add("ready");

  // Paper takes all rows that match.
  addEventListener("beforeprint", () => { limit = Infinity; show(); });
  addEventListener("afterprint", () => { limit = pageOfRows; show(); });

  // loaded takes in the conversations, which are loaded after the script has run.
  function loaded() {
    words.length = 0;
    if (listAddress !== "#") update();
  }
  return { restore, remember, loaded };
}

// textsOf returns the texts of a conversation and of the messages with it.
function textsOf(conversation) {
  const texts = [];
  for (const item of conversation ? [...conversation.items, ...conversation.messages] : []) {
    for (const value of Object.values(item)) {
      if (typeof value === "string") texts.push(value);
      else if (Array.isArray(value)) value.forEach((part) => texts.push(...Object.values(part).filter((text) => typeof text === "string")));
    }
  }
  return texts;
}
