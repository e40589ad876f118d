// Addresses, keys and the start.
// readAddress shows what the fragment of the address names: a task, or the board with
// its filter.
let backTo = "", focusRef = "";
function readAddress() {
  const hash = location.hash;
  if (hash.startsWith("#task-")) {
    let ref;
    try { ref = decodeURIComponent(hash.slice(6)); } catch { ref = hash.slice(6); }
    openOne(ref);
    return;
  }
  const was = one.ref;
  closeOne();
  if (hash.startsWith("#?") || hash === "" || hash === "#") {
    backTo = hash;
    const values = new URLSearchParams(hash.slice(2));
    for (const name of Object.keys(filter)) {
      filter[name] = values.get(name) || "";
      if (byID("filter-" + (name === "q" ? "text" : name)).value !== filter[name]) byID("filter-" + (name === "q" ? "text" : name)).value = filter[name];
    }
    limit = step;
  }
  drawAll();
  if (was) [...document.querySelectorAll("#board a")].find((a) => a.getAttribute("href") === (focusRef || address(was)))?.focus();
  else if (hash.startsWith("#?")) byID("tasks").scrollIntoView();
}

function writeFilter() {
  const values = Object.entries({ q: byID("filter-text").value, status: byID("filter-status").value, recipient: byID("filter-recipient").value }).filter(([, value]) => value);
  const hash = values.length ? "#?" + new URLSearchParams(values) : "#";
  for (const name of Object.keys(filter)) filter[name] = Object.fromEntries(values)[name] || "";
  backTo = hash;
  limit = step;
  history.replaceState(null, "", hash);
  drawAll();
}

function startKeys() {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
    const field = event.target.closest?.("input, select, textarea");
    if (event.key === "Escape" && field) {
      if (field.id === "filter-text" && field.value) {
        field.value = "";
        writeFilter();
      } else field.blur();
    } else if (event.key === "Escape") {
      if (one.ref) location.hash = backTo || "#";
    } else if (field) {
      return;
    } else if (event.key === "/") {
      if (one.ref) {
        location.hash = backTo || "#";
        addEventListener("hashchange", () => byID("filter-text").focus(), { once: true });
      } else byID("filter-text").focus();
    } else if (event.key === "j" || event.key === "k") {
      move(event.key === "j" ? 1 : -1);
    } else return;
    event.preventDefault();
  });
}

function move(by) {
  const stops = [...document.querySelectorAll(one.ref ? "#one .item" : "#tasks-body .c-task a")];
  const at = stops.findIndex((stop) => stop === document.activeElement || stop.contains(document.activeElement));
  const next = stops[at < 0 ? (by > 0 ? 0 : stops.length - 1) : at + by];
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}

byID("filter").addEventListener("input", writeFilter);
byID("filter").addEventListener("submit", (event) => event.preventDefault());
byID("filter").addEventListener("reset", () => setTimeout(writeFilter));
byID("more").firstChild.addEventListener("click", () => { limit += 4 * step; drawAll(); });
byID("running-more").firstChild.addEventListener("click", () => { runningShown += runningStep; drawAll(); });
addEventListener("hashchange", readAddress);
startKeys();
readAddress();
connect();
setInterval(() => { if (connected) drawAll(); }, 1000); // for the times
