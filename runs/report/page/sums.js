// The sums of the runs that match the filters, in the form that the page was written with
// for all of them.
function showSums(list) {
  const sum = sumOf(list, counted(list));
  showFigures(list, sum);
  showPeriods(list);
  showFailures(list.filter((run) => run.failure_kind), list.length);
  showUsage(list, sum);
  showDurations(list.filter((run) => run.ended && run.duration !== undefined));
  showTools(list);
}

const plural = (n, one, many) => `${thousands(n)} ${n === 1 ? one : many}`;

const number = (text, extra) => element("td", { class: "n" + (extra || "") }, text);

const known = (text) => text || element("i", {}, "unknown");

const byText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

// groupsOf returns the groups of a list with the name of each, in their order in the list;
// grouped returns the largest first.
function groupsOf(list, nameOf) {
  const groups = new Map();
  for (const one of list) {
    const name = nameOf(one);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(one);
  }
  return [...groups];
}

const grouped = (list, nameOf) => groupsOf(list, nameOf).sort(([a, x], [b, y]) => y.length - x.length || byText(a, b));

// counted returns the runs whose usage counts in sums: of those with the cumulative usage
// of one session, the newest.
function counted(list) {
  const seen = new Set();
  return new Set(list.filter((run) => {
    if (!run.usage?.cumulative || !run.session_id) return run.usage;
    const session = run.runtime + "\n" + run.session_id;
    return !seen.has(session) && seen.add(session);
  }));
}

function sumOf(list, counts) {
  const sum = { runs: list.length, told: 0, input: 0, cached: 0, output: 0, reasoning: 0, cost: 0, costs: 0, cumulative: false };
  for (const run of list) {
    if (!run.usage) continue;
    sum.told++;
    sum.cumulative ||= Boolean(run.usage.cumulative);
    if (run.usage.cost_usd !== undefined) sum.costs++;
    if (!counts.has(run)) continue;
    for (const field of ["input", "cached", "output", "reasoning"]) sum[field] += run.usage[field];
    sum.cost += run.usage.cost_usd ?? 0;
  }
  return sum;
}

function costOf(sum) {
  if (!sum.costs) return "";
  const [whole, cents] = sum.cost.toFixed(sum.cost < 1 ? 4 : 2).split(".");
  return `$${thousands(Number(whole))}.${cents}`;
}

function brief(n) {
  for (const [size, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    const x = n / size;
    if (x >= 0.9995) return x.toFixed(x < 9.995 ? 2 : x < 99.95 ? 1 : 0) + letter;
  }
  return String(n);
}

function showFigures(list, sum) {
  const by = (status) => list.filter((run) => run.status === status).length;
  const figures = [["Runs", thousands(list.length), plural(new Set(list.map((run) => run.project)).size, "project", "projects")]];
  if (list.length === 1) {
    figures.push(["Status", list[0].status, list[0].failure_kind]);
  } else {
    const completed = by("completed");
    const others = ["crashed", "running", "unknown"].filter(by).map((status) => `${thousands(by(status))} ${status}`);
    figures.push(["Completed", `${(100 * completed / Math.max(list.length, 1)).toFixed(list.length >= 100 ? 1 : 0)} %`, `${thousands(completed)} of ${thousands(list.length)}`],
      ["Not completed", thousands(list.length - completed), [`${thousands(by("failed"))} failed`, ...others].join(", ")]);
  }
  const total = (field) => list.reduce((all, run) => all + (run[field] || 0), 0);
  figures.push(["Time of agents", span(total("duration")), plural(total("tool_calls"), "tool call", "tool calls")],
    sum.told ? ["Tokens", brief(sum.input + sum.output), `${brief(sum.input)} in, ${brief(sum.output)} out`] : ["Tokens", "unknown", "no run reports them"],
    !sum.costs ? ["Cost", "unknown", "no run reports it"]
      : sum.costs < sum.runs ? ["Known cost", costOf(sum), "unknown for " + plural(sum.runs - sum.costs, "run", "runs")]
        : ["Cost", costOf(sum), "known for every run"]);
  byID("figures").className = list.length === 1 ? "figures one" : "figures";
  byID("figures").replaceChildren(...figures.map(([name, value, note]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value), element("dd", { class: "sub" }, note))));
}

function showPeriods(list) {
  const table = byID("time-table").querySelector("table");
  const states = [...table.tHead.rows[0].cells].slice(2).map((cell) => cell.textContent);
  const hours = table.tHead.textContent.startsWith("Hour");
  const periods = groupsOf(list.filter((run) => run.start), ({ start_text: text }) => (hours ? text.slice(0, 13) + ":00" : text.slice(0, 10)));
  table.tBodies[0].replaceChildren(...periods.map(([name, all]) => element("tr", {}, element("th", { scope: "row" }, name), number(thousands(all.length)),
    ...states.map((state) => { const n = all.filter((run) => run.status === state).length; return number(n ? thousands(n) : ""); }))));
}

function showFailures(failed, all) {
  const section = byID("failures");
  if (!section) return;
  section.hidden = !failed.length;
  byID("failed").textContent = `${thousands(failed.length)} of ${thousands(all)} runs`;
  section.querySelector(".kinds").replaceChildren(...grouped(failed, (run) => run.failure_kind).map(([kind, list]) => {
    const found = groupsOf(list, (run) => reasons.get(run)).sort(([, a], [, b]) => b.length - a.length);
    const lines = found.slice(0, 12).map(([reason, those]) => element("li", {}, element("span", { class: "number" }, thousands(those.length) + " ×"), " ",
      element("span", { class: "reason", dir: "auto" }, reason), "\n",
      element("span", { class: "where" }, ...those.slice(0, 4).flatMap((run, i) => [i ? ", " : "", element("a", { href: address(run) }, `${run.runtime} ${run.start_text || ""}`)]),
        those.length > 4 ? ` and ${thousands(those.length - 4)} older` : "")));
    if (found.length > 12) lines.push(element("li", { class: "where" }, `and ${thousands(found.length - 12)} other reasons`));
    return element("div", { class: "kind" }, element("h3", {}, kind + " ", element("span", { class: "number" }, thousands(list.length))), element("ul", {}, ...lines));
  }));
}

function showUsage(list, all) {
  const counts = counted(list), table = byID("usage").querySelector("table");
  const cells = (sum) => {
    const whole = sum.cumulative ? " whole" : "";
    return [number(thousands(sum.runs)), ...["input", "cached", "output", "reasoning"].map((field) => number(sum.told ? thousands(sum[field]) : "", whole)),
      number(known(costOf(sum))), element("td", {}, sum.costs === sum.runs ? "none" : !sum.costs && sum.runs > 1 ? "all runs" : plural(sum.runs - sum.costs, "run", "runs"))];
  };
  const bodies = grouped(list, (run) => run.runtime).map(([runtime, group]) => element("tbody", {},
    element("tr", { class: "group" }, element("th", { scope: "rowgroup" }, runtime), ...cells(sumOf(group, counts))),
    ...grouped(group, (run) => run.model || "").map(([model, those]) =>
      element("tr", {}, element("th", { scope: "row" }, model || element("i", {}, "model not told")), ...cells(sumOf(those, counts))))));
  table.replaceChildren(table.tHead, ...bodies, element("tfoot", {}, element("tr", {}, element("th", { scope: "row" }, "All"), ...cells(all))));
  if (byID("cumulative")) byID("cumulative").hidden = !all.cumulative;
}

// durationSteps are the upper ends of the columns of durations; the last has none.
const durationSteps = [["1 s", 1], ["3 s", 3], ["10 s", 10], ["30 s", 30], ["1 m", 60], ["3 m", 180], ["10 m", 600], ["30 m", 1800], ["1 h", 3600], ["3 h", 10800]];

function showDurations(ended) {
  const section = byID("durations");
  if (!section) return;
  section.hidden = !ended.length;
  section.querySelector("tbody").replaceChildren(...grouped(ended, (run) => run.runtime).map(([runtime, list]) => {
    const all = list.map((run) => run.duration).sort((a, b) => a - b);
    const rank = (percent) => span(all[Math.floor((all.length * percent + 99) / 100) - 1]);
    return element("tr", {}, element("th", { scope: "row" }, runtime), number(thousands(all.length)), number(rank(50)), number(rank(90)), number(span(all[all.length - 1])),
      element("td", {}, durationBars(all)));
  }));
}

function durationBars(all) {
  const width = 12, height = 28, last = durationSteps.length;
  const counts = new Array(last + 1).fill(0);
  for (const ms of all) counts[(durationSteps.findIndex(([, end]) => ms < end * 1000) + last + 1) % (last + 1)]++;
  const labels = counts.map((n, i) => `${i === 0 ? "under " + durationSteps[0][0] : i === last ? durationSteps[i - 1][0] + " and more"
    : `${durationSteps[i - 1][0]} to ${durationSteps[i][0]}`}: ${plural(n, "run", "runs")}`);
  const svg = shape("svg", { class: "bars", width: width * (last + 1) - 2, height, role: "img", "aria-label": labels.filter((_, i) => counts[i]).map((label) => label + "; ").join("") });
  counts.forEach((n, i) => {
    const bar = shape("g", {}, shape("title", {}, labels[i]), shape("rect", { class: "floor", x: i * width, y: 0, width: width - 2, height }));
    const tall = n && Math.max(Math.ceil(n * height / Math.max(...counts)), 2);
    if (tall) bar.append(shape("rect", { x: i * width, y: height - tall, width: width - 2, height: tall }));
    svg.append(bar);
  });
  return svg;
}

function showTools(list) {
  const section = byID("tools");
  if (!section) return;
  const tools = new Map();
  for (const run of list) {
    for (const [name, [calls, failed, answered, total, longest]] of Object.entries(run.tools || {})) {
      const use = tools.get(name) || { calls: 0, failed: 0, answered: 0, total: 0, longest: 0 };
      tools.set(name, { calls: use.calls + calls, failed: use.failed + failed, answered: use.answered + answered, total: use.total + total, longest: Math.max(use.longest, longest) });
    }
  }
  const inside = list.filter((run) => byID("conversation-" + run.index)).length;
  byID("inside").textContent = `in ${inside === 1 ? "the conversation" : `the ${thousands(inside)} conversations`} on this page`;
  section.hidden = !tools.size;
  section.querySelector("tbody").replaceChildren(...[...tools].sort(([a, x], [b, y]) => y.calls - x.calls || byText(a, b)).map(([name, use]) => {
    const time = (ms) => number(use.answered ? span(ms) : "");
    return element("tr", {}, element("th", { scope: "row" }, name), number(thousands(use.calls)), number(use.failed ? thousands(use.failed) : ""),
      time(use.total / Math.max(use.answered, 1)), time(use.longest), time(use.total));
  }));
}
