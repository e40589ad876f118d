// What a task says is drawn as text: element() sets nothing else. Nodes stay while what
// they show changes, so that focus, scrolling and open details are kept.
const byID = (id) => document.getElementById(id);

function element(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== undefined && value !== "") node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== null && child !== ""));
  return node;
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function setAttribute(node, name, value) {
  if (value === undefined || value === "") node.removeAttribute(name);
  else if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

// keep makes the children of a parent those of a list, in its order. It draws new ones
// with make(item), and all with draw(node, item). Nodes that are right stay untouched.
function keep(parent, items, key, make, draw) {
  const nodes = parent.kept || (parent.kept = new Map());
  const wanted = new Set(items.map(key));
  let removed = false;
  for (const [id, node] of nodes) {
    if (wanted.has(id)) continue;
    node.remove();
    nodes.delete(id);
    removed = true;
  }
  let at = parent.firstChild;
  for (const item of items) {
    const id = key(item);
    let node = nodes.get(id);
    if (!node) nodes.set(id, (node = make(item)));
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
    draw(node, item);
  }
  return removed;
}

// visible is for what comes as it is in the log; the server does it to all other texts.
const visible = (text) => text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (c) => {
  const code = c.codePointAt(0);
  return code < 0x20 ? String.fromCodePoint(0x2400 + code) : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
});

const thousands = (n) => n.toLocaleString("en-US");
const plural = (n, one, many) => `${thousands(n)} ${n === 1 ? one : many || one + "s"}`;

function bytes(n) {
  if (n < 1000) return `${n} bytes`;
  return n < 1e6 ? `${(n / 1000).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`;
}

// span is a time in seconds in its two largest units.
function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} m`;
  if (s < 172800) return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} m`;
  return `${Math.floor(s / 86400)} d`;
}
