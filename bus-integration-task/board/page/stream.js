// Tasks arrive as server-sent events; actions are posted.
const tasks = new Map(); // by reference
let facts = { queues: [], totals: {} }; // the rest of the latest update
let clock = 0; // of the server, minus that of the browser
const now = () => Date.now() + clock;
const ago = (at) => span((now() - at) / 1000);
const holds = (task) => task.status === "running" || task.status === "waiting";
const ended = (task) => ["done", "blocked", "failed", "canceled"].includes(task.status);
const address = (ref) => "#task-" + encodeURIComponent(ref);

let stream, connected = false, lostAt = 0, arrived = new Set();

function connect() {
  stream = new EventSource("events");
  stream.addEventListener("message", (event) => take(JSON.parse(event.data)));
  stream.addEventListener("error", () => {
    if (!lostAt) lostAt = Date.now();
    setConnected(false);
    if (stream.readyState === EventSource.CLOSED) setTimeout(connect, 3000);
  });
}

function setConnected(is) {
  connected = is;
  if (is) lostAt = 0;
  setText(byID("link"), is ? "Live" : "Disconnected");
  byID("link").classList.toggle("live", is);
  document.body.classList.toggle("is-offline", !is);
  const bar = byID("offline");
  const text = is ? "" : stream.readyState === EventSource.CLOSED
    ? "The board does not accept this page. If it was restarted, open the address that it printed."
    : `Disconnected at ${new Date(lostAt).toLocaleTimeString()}: what you see may be old. Connecting again …`;
  setText(bar, text);
  bar.hidden = is;
}

function take(update) {
  clock = update.now - Date.now();
  if (update.reset) arrived = new Set();
  for (const task of update.tasks || []) {
    tasks.set(task.ref, task);
    arrived.add(task.ref);
  }
  for (const ref of update.gone || []) {
    tasks.delete(ref);
    arrived.delete(ref);
  }
  facts = update;
  if (update.more) return;
  if (tasks.size > arrived.size) {
    for (const ref of tasks.keys()) if (!arrived.has(ref)) tasks.delete(ref);
  }
  if (!connected) setConnected(true);
  schedule();
}

// schedule draws at the next frame, or soon in a page that is not seen.
let scheduled = false;
function schedule() {
  if (scheduled) return;
  scheduled = true;
  const draw = () => {
    if (!scheduled) return;
    scheduled = false;
    drawAll();
  };
  requestAnimationFrame(draw);
  setTimeout(draw, 500);
}

// act posts an action, once at a time, and reports next to its control how it went. An
// answer that was taken stays locked until the request goes away, or for ten seconds.
async function act(action, buttons, said, success) {
  if (buttons.locked) return false;
  const lock = (is) => {
    buttons.locked = is;
    for (const button of buttons) setAttribute(button, "aria-disabled", is ? "true" : "");
  };
  lock(true);
  setText(said, "Sending …");
  let why = "";
  try {
    const response = await fetch("act", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(action) });
    if (!response.ok) why = (await response.json()).error;
  } catch {
    why = "the board cannot be reached";
  }
  setText(said, why ? "Not sent: " + why : success);
  said.classList.toggle("bad", why !== "");
  if (why || (action.do !== "answer" && action.do !== "approve")) lock(false);
  else setTimeout(lock, 10000, false);
  return !why;
}
