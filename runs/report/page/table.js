// The table of runs: filters, order, and a part of the rows at a time.
const pageOfRows = 100;

function startTable() {
  const body = byID("table").tBodies[0];
  const rows = [...body.rows];
  const words = runs.map((run) => [run.task, run.project, run.id, run.runtime, run.model, run.failure_kind,
    run.failure, run.session_id, run.start_text].join("\n").toLowerCase());
  let order = runs.map((_, index) => index), sorted = "start", descending = true, limit = pageOfRows;

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
      wanted.every((word) => words[index].includes(word)));
  }

  function show() {
    const found = matching();
    const visible = found.slice(0, limit);
    body.replaceChildren(...visible.map((index) => rows[index]));
    if (!found.length) {
      body.append(element("tr", { class: "nothing" }, element("td", { colspan: 10 }, "No run matches. Clear the filters to see all.")));
    }
    byID("shown").textContent = found.length === runs.length ? thousands(runs.length)
      : `${thousands(found.length)} of ${thousands(runs.length)}`;
    const left = found.length - visible.length;
    byID("more").hidden = !left;
    byID("more").firstElementChild.textContent = left > pageOfRows * 5
      ? `Show ${pageOfRows * 5} more of ${thousands(left)}` : `Show the other ${thousands(left)}`;
  }

  const values = {
    start: (run) => run.start || 0, status: (run) => run.status, task: (run) => run.project + "/" + run.name,
    runtime: (run) => run.runtime, model: (run) => run.model || "", duration: (run) => run.duration ?? -1,
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
  const select = element("select", { id: "filter-order" });
  const headers = [...byID("table").tHead.rows[0].cells];
  for (const header of headers) {
    const column = header.dataset.sort, name = header.textContent;
    const button = element("button", { type: "button" }, name);
    button.addEventListener("click", () => {
      const numbers = header.classList.contains("n") || column === "start";
      sort(column, sorted === column ? !descending : numbers);
      show();
    });
    header.replaceChildren(button);
    select.append(element("option", { value: column + " down" }, `${name} ↓`), element("option", { value: column + " up" }, `${name} ↑`));
  }
  const filter = byID("filter");
  filter.insertBefore(element("label", { class: "order" }, "Order ", select), filter.lastElementChild);
  select.addEventListener("change", () => sort(select.value.split(" ")[0], select.value.endsWith("down")));

  filter.addEventListener("submit", (event) => event.preventDefault());
  filter.addEventListener("input", () => { limit = pageOfRows; show(); });
  filter.addEventListener("reset", () => setTimeout(() => { limit = pageOfRows; sort("start", true); show(); }));
  byID("more").firstElementChild.addEventListener("click", () => {
    const before = body.rows.length;
    limit += pageOfRows * 5;
    show();
    body.rows[before]?.querySelector("a").focus({ preventScroll: true });
  });
  filter.hidden = false;
  sort("start", true);
  show();
  body.classList.add("ready");

  // Paper takes all rows that match.
  addEventListener("beforeprint", () => { limit = Infinity; show(); });
  addEventListener("afterprint", () => { limit = pageOfRows; show(); });
}
