// The timeline of runs: a bar each, as long as the run took, in as many lanes as
// runs overlap on the screen. Where many do, the lanes show how many.
const lanesAtMost = 60;

// showTimeline draws those of the given runs that have a start.
let showTimeline = () => {};

function startTimeline() {
  const started = runs.filter((run) => run.start);
  if (!started.length) return;
  const chart = byID("time-chart"), group = byID("time-group"), spans = byID("time-span");
  const newest = started[0].start;
  const oldest = started[started.length - 1].start;
  for (const [hours, name] of [[1, "the last hour"], [24, "the last day"], [24 * 7, "the last 7 days"], [24 * 30, "the last 30 days"]]) {
    if (newest - oldest > hours * 3.6e6 * 1.2) spans.append(element("option", { value: hours * 3.6e6 }, name));
  }
  if (spans.options.length === 1) spans.parentNode.hidden = true;
  let shown = [];
  const draw = () => {
    if (!chart.clientWidth) return;
    chart.replaceChildren(shown.length ? timeline(shown, group.value, Number(spans.value), chart.clientWidth)
      : element("p", { class: "foot" }, "No run matches."));
    for (const state of byID("time-legend").children) state.hidden = !shown.some((run) => run.status === state.textContent);
  };
  showTimeline = (list) => {
    shown = list.filter((run) => run.start);
    draw();
  };
  chart.hidden = byID("time-legend").hidden = byID("time-controls").hidden = false;
  whenWide(chart, draw);
}

// whenWide draws a chart when it has got a width, and again with each other one.
function whenWide(chart, draw) {
  let width = 0;
  new ResizeObserver(() => requestAnimationFrame(() => {
    if (chart.clientWidth && chart.clientWidth !== width) {
      width = chart.clientWidth;
      draw();
    }
  })).observe(chart);
}

// endOf is until when a run is drawn.
const endOf = (run) => run.start + (run.duration || 0);

function timeline(known, field, length, width) {
  const newest = known[0].start;
  const shown = length ? known.filter((run) => run.start >= newest - length) : known;
  let from = length ? newest - length : Math.min(...shown.map((run) => run.start));
  let to = shown.reduce((end, run) => Math.max(end, endOf(run)), newest);
  const room = Math.max((to - from) * 0.01, 500);
  [from, to] = [from - room, to + room];

  const wide = width > 640, left = wide ? Math.min(180, width * 0.2) : 0, right = width - 2;
  const x = (time) => left + (time - from) / (to - from) * (right - left);
  const groups = new Map();
  for (const run of shown) {
    const name = field === "task" ? `${run.project}/${run.name}` : run[field];
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(run);
  }
  let names = [...groups.keys()].sort((a, b) => groups.get(b).length - groups.get(a).length || (a < b ? -1 : 1));
  const others = names.slice(field === "task" ? 20 : 12);
  if (others.length > 1) {
    names = names.slice(0, -others.length);
    const rest = `${others.length} others`;
    groups.set(rest, others.flatMap((name) => groups.get(name)).sort((a, b) => b.start - a.start));
    names.push(rest);
  }

  const svg = shape("svg", { role: "img", width, "aria-label": describe(shown, names, groups, field) });
  const axis = shape("g", { class: "axis" });
  svg.append(axis);
  let y = 22;
  for (const name of names) {
    const list = groups.get(name);
    const { lanes, placed, missing } = arrange(list, x);
    const lane = lanes > 24 ? 4 : lanes > 8 ? 6 : 10;
    const gap = wide ? 0 : 18, height = Math.max(lanes * lane, wide ? 18 : lane);
    const label = shape("text", { x: wide ? 0 : 1, y: wide ? y + 12 : y + 12, class: "label" },
      shorten(name || "–", wide ? Math.floor(left / 7.4) : 44));
    label.append(shape("tspan", { class: "sub", dx: 6 }, thousands(list.length)));
    label.append(shape("title", {}, name));
    svg.append(label);
    for (const { run, lane: n, start, end } of placed) {
      const bar = barOf(run.status, start, end, y + gap + height - (n + 1) * lane, lane);
      bar.append(shape("title", {}, `${run.name}\n${run.status}, ${run.start_text} UTC, ${run.took || "duration unknown"}`));
      bar.addEventListener("click", () => { location.hash = address(run); });
      svg.append(bar);
    }
    if (missing) svg.append(shape("text", { class: "sub", x: wide ? 0 : right, y: y + (wide ? 26 : 12), "text-anchor": wide ? "start" : "end" }, `${thousands(missing)} not drawn`));
    y += gap + Math.max(height, missing && wide ? 32 : 0) + 10;
    svg.append(shape("line", { class: "rule", x1: 0, x2: right, y1: y - 5.5, y2: y - 5.5 }));
  }
  drawAxis(axis, from, to, x, y - 6, right, wide);
  svg.setAttribute("height", y);
  return svg;
}

// barOf is a bar in a lane. A completed run is lower than others, so that the state
// does not depend on color alone; a run without a known end is hollow.
function barOf(state, start, end, top, lane) {
  const hollow = state === "crashed" || state === "unknown" ? 0.5 : 0;
  const height = state === "completed" ? Math.ceil((lane - 1) * 0.6) : lane - 1;
  return shape("rect", { class: "bar " + state, x: (start + hollow).toFixed(1), width: (end - start - 2 * hollow).toFixed(1),
    y: top + lane - height + hollow, height: height - 2 * hollow, rx: lane > 6 && !hollow ? 1.5 : 0 });
}

// arrange puts the bars into lanes so that none covers another.
function arrange(list, x) {
  const ends = [], placed = [];
  let missing = 0;
  for (const run of [...list].reverse()) {
    let start = x(run.start), end = x(endOf(run));
    if (end < start + 3) { // the shortest stand in columns
      start = Math.floor(start / 4) * 4;
      end = start + 3;
    }
    let lane = ends.findIndex((free) => free <= start);
    if (lane < 0) lane = ends.length;
    if (lane >= lanesAtMost) { missing++; continue; }
    ends[lane] = end + 1;
    placed.push({ run, lane, start, end });
  }
  return { lanes: ends.length, placed, missing };
}

const axisSteps = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800, 1209600,
  2592000, 7776000, 31536000].map((s) => s * 1000);

function drawAxis(axis, from, to, x, bottom, right, wide) {
  const most = Math.max((right - x(from)) / (wide ? 110 : 84), 2);
  const step = axisSteps.find((s) => (to - from) / s <= most) || axisSteps[axisSteps.length - 1];
  let day = "";
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    const at = Math.round(x(t)) + 0.5, text = new Date(t).toISOString();
    const words = step >= 86400000 ? text.slice(0, 10) : text.slice(0, 10) !== day ? text.slice(5, 10) + " " + text.slice(11, 16)
      : text.slice(11, step < 60000 ? 19 : 16);
    day = text.slice(0, 10);
    axis.append(shape("line", { x1: at, x2: at, y1: 16, y2: bottom }));
    if (at < right - 60) axis.append(shape("text", { x: at + 4, y: 12 }, words));
  }
}

function describe(shown, names, groups, field) {
  const parts = names.map((name) => {
    const list = groups.get(name), bad = list.filter((run) => run.status !== "completed").length;
    return `${name}: ${list.length} runs, ${bad} not completed`;
  });
  return `${shown.length} runs over time by ${field}. ${parts.join("; ")}. The table below says the same in numbers.`;
}
