// Whatever comes from runs reaches the page as text: element() sets nothing else.
const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function shape(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

// fill appends the children before it sets attributes: with dir="auto", Chromium searches
// all children for the direction each time one is added.
function fill(node, attributes, children) {
  node.append(...children.filter((child) => child !== undefined && child !== null && child !== ""));
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== undefined && value !== "") node.setAttribute(key, value);
  }
  return node;
}

// copyButton is a button that copies a text, or what a function returns.
function copyButton(what, text) {
  const button = element("button", { type: "button", class: "copy", "aria-label": "Copy " + what }, "Copy");
  button.addEventListener("click", async () => {
    let said = "Copied";
    try { await navigator.clipboard.writeText(typeof text === "function" ? text() : text); } catch { said = "Not copied"; }
    button.textContent = said;
    button.setAttribute("aria-label", said);
    button.addEventListener("blur", () => {
      button.textContent = "Copy";
      button.setAttribute("aria-label", "Copy " + what);
    }, { once: true });
  });
  return button;
}

// copied is a short text in a line with its button.
const copied = (what, text) => element("span", { class: "copied" }, element("code", {}, text), " ", copyButton(what, text));

// codeBlock is a preformatted text below its name and its button. What it shows may
// differ from what is copied.
function codeBlock(name, what, text, shown) {
  return element("div", { class: "code" },
    element("div", { class: "code-head" }, element("span", {}, name), copyButton(what, text)),
    shown || element("pre", { tabindex: 0, role: "group", "aria-label": shorten(name, 80), dir: "auto" }, text));
}

const byID = (id) => document.getElementById(id);

const thousands = (n) => n.toLocaleString("en-US");

function span(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59950) return `${(ms / 1000).toFixed(1)} s`;
  const s = Math.round(ms / 1000), two = (n) => String(n).padStart(2, "0");
  if (s < 3600) return `${Math.floor(s / 60)} m ${two(s % 60)} s`;
  if (s < 172800) return `${Math.floor(s / 3600)} h ${two(Math.floor(s / 60) % 60)} m`;
  return `${Math.floor(s / 86400)} d ${two(Math.floor(s / 3600) % 24)} h`;
}

// offset is a time since the start of a run.
function offset(ms) {
  const s = Math.floor(ms / 1000), two = (n) => String(n).padStart(2, "0");
  if (s < 3600) return `${Math.floor(s / 60)}:${two(s % 60)}`;
  return `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
}

function bytes(n) {
  if (n < 1000) return `${n} bytes`;
  return n < 1e6 ? `${(n / 1000).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`;
}

const shorten = (text, limit) => (text.length > limit ? text.slice(0, limit) + "…" : text);

// visible shows characters that act on the text around them, which JSON inside of a
// text can bring; the others are visible in the page's data already.
function visible(text) {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (c) => {
    const code = c.codePointAt(0);
    if (c === "\n" || c === "\t" || code === 0x200c || code === 0x200d) return c;
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

const data = JSON.parse(byID("runs-data").textContent);
const runs = data.runs || [];
const byKey = new Map(runs.map((run) => [run.key, run]));
const byRunID = new Map();
runs.forEach((run, index) => {
  run.index = index;
  if (!byRunID.has(run.id)) byRunID.set(run.id, run);
});

const address = (run) => "#run-" + encodeURIComponent(run.key);

// localTime is when a run started where the reader is.
const localTime = (run) => (run.start ? new Date(run.start).toLocaleString() : "");
