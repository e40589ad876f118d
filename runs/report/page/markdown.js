// Markdown as agents write it, as elements: no text becomes markup, no address becomes a
// link, and what is not understood stays as it was written. The time it takes is
// proportional to the length of the text.
const blockDepth = 8, openSpans = 12; // limits

const blockStarts = {
  fence: /^ {0,3}(`{3,}|~{3,})([^`]*)$/,
  heading: /^ {0,3}(#{1,6})(?=[ \t]|$)/,
  rule: /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/,
  quote: /^ {0,3}>/,
  item: /^( {0,3})([-*+]|\d{1,9}[.)])(?=[ \t]|$)/,
};
const underline = /^ {0,3}(=+|-+)[ \t]*$/;
const tableRule = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const spanStart = /\\[!-/:-@[-`{-~]|`+|!?\[|\*+|_+|~~/g;
const linkHere = /!?\[([^[\]]{0,500})\]\([ \t]*<?([^\s<>()]{0,2000}(?:\([^\s<>()]{0,200}\)[^\s<>()]{0,200})?)>?(?:[ \t]+"([^"]{0,500})")?[ \t]*\)/y;

function markdown(text) {
  return element("div", { class: "prose", dir: "auto" }, ...blocksOf(text.split("\n"), { depth: 0, level: 2 }));
}

// blocksOf returns the blocks of some lines. Its context has the depth of blocks in blocks
// and the level of the last heading, which the next exceeds by one at most.
function blocksOf(lines, context) {
  const out = [];
  for (let i = 0; i < lines.length;) {
    const block = !lines[i].trim() ? { end: i + 1 } : blockAt(lines, i, context) || paragraph(lines, i, context);
    if (block.node) out.push(block.node);
    i = block.end;
  }
  return out;
}

// blockAt returns the block other than a paragraph that begins at a line.
function blockAt(lines, i, context) {
  const fence = blockStarts.fence.exec(lines[i]);
  if (fence) return fenced(lines, i, fence);
  if (/^(?: {4}|\t)/.test(lines[i])) return indented(lines, i);
  const heading = blockStarts.heading.exec(lines[i]);
  if (heading) return { node: headingOf(lines[i].slice(heading[0].length).trim().replace(/(^|[ \t])#+$/, ""), heading[1].length, context), end: i + 1 };
  if (blockStarts.rule.test(lines[i])) return { node: element("hr"), end: i + 1 };
  if (context.depth >= blockDepth) return null;
  if (blockStarts.quote.test(lines[i])) {
    let end = i + 1;
    while (end < lines.length && blockStarts.quote.test(lines[end])) end++;
    const inner = lines.slice(i, end).map((line) => line.replace(/^ {0,3}> ?/, ""));
    return { node: element("blockquote", {}, ...deeper(inner, context)), end };
  }
  if (blockStarts.item.test(lines[i])) return listOf(lines, i, context);
  if (lines[i].includes("|") && i + 1 < lines.length && lines[i + 1].includes("|") && tableRule.test(lines[i + 1])) return tableOf(lines, i);
  return null;
}

function deeper(lines, context) {
  context.depth++;
  const out = blocksOf(lines, context);
  context.depth--;
  return out;
}

function headingOf(text, level, context) {
  context.level = Math.min(level + 2, context.level + 1, 6);
  return element("h" + context.level, {}, ...spansOf(text));
}

function fenced(lines, i, [, fence, info]) {
  let end = i + 1;
  const closing = (line) => { const mark = /^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(line); return mark && mark[1][0] === fence[0] && mark[1].length >= fence.length; };
  while (end < lines.length && !closing(lines[end])) end++;
  return { node: codeOf(lines.slice(i + 1, end).join("\n"), info.trim()), end: end + 1 };
}

function indented(lines, i) {
  let end = i + 1;
  for (let at = end; at < lines.length && (!lines[at].trim() || /^(?: {4}|\t)/.test(lines[at])); at++) if (lines[at].trim()) end = at + 1;
  return { node: codeOf(lines.slice(i, end).map((line) => line.replace(/^(?: {4}|\t)/, "")).join("\n"), ""), end };
}

const codeOf = (text, language) => codeBlock(language || "Code", "code", text, isPatch(text) || /^(diff|patch)\b/.test(language) ? patchView(text) : null);

function listOf(lines, i, context) {
  const [, , marker] = blockStarts.item.exec(lines[i]);
  const kind = marker.slice(-1), ordered = /\d/.test(marker);
  const list = element(ordered ? "ol" : "ul", ordered ? { start: parseInt(marker, 10) } : {});
  while (i < lines.length) {
    const start = blockStarts.item.exec(lines[i]);
    if (!start || start[2].slice(-1) !== kind || blockStarts.rule.test(lines[i])) break;
    const rest = lines[i].slice(start[0].length), space = /^[ \t]*/.exec(rest)[0].length;
    const indent = start[0].length + (space > 4 || space === rest.length ? 1 : space);
    const inner = [lines[i].slice(indent)];
    for (i++; i < lines.length; i++) {
      if (!lines[i].trim()) {
        if (i + 1 >= lines.length || indentOf(lines[i + 1]).length < indent) break;
      } else if (indentOf(lines[i]).length < indent &&
        (!inner[inner.length - 1].trim() || blockStarts.item.test(lines[i]) || beginsBlock(lines[i]))) break;
      inner.push((indentOf(lines[i]) + lines[i].trimStart()).slice(Math.min(indent, indentOf(lines[i]).length)));
    }
    list.append(element("li", {}, ...deeper(inner, context)));
    while (i + 1 < lines.length && !lines[i].trim() && blockStarts.item.test(lines[i + 1])) i++;
  }
  return { node: list, end: i };
}

// indentOf is the beginning of a line without tabs.
const indentOf = (line) => /^[ \t]*/.exec(line)[0].replace(/\t/g, "    ");

// beginsBlock reports whether a line ends the paragraph before it.
function beginsBlock(line) {
  const item = blockStarts.item.exec(line);
  return blockStarts.fence.test(line) || blockStarts.heading.test(line) || blockStarts.rule.test(line) || blockStarts.quote.test(line) ||
    Boolean(item && line.length > item[0].length && (!/\d/.test(item[2]) || parseInt(item[2], 10) === 1));
}

function paragraph(lines, i, context) {
  let end = i + 1;
  for (; end < lines.length && lines[end].trim(); end++) {
    const line = underline.exec(lines[end]);
    if (line) return { node: headingOf(lines.slice(i, end).join("\n").trim(), line[1][0] === "=" ? 1 : 2, context), end: end + 1 };
    if (context.depth < blockDepth && beginsBlock(lines[end])) break;
  }
  return { node: element("p", {}, ...spansOf(lines.slice(i, end).join("\n").trim())), end };
}

// cellsOf splits a row of a table at each | that has no backslash before it.
function cellsOf(line) {
  const cells = [];
  let joins = false;
  for (const part of line.trim().replace(/^\|/, "").replace(/\|$/, "").split("|")) {
    if (joins) cells[cells.length - 1] += "|" + part;
    else cells.push(part);
    joins = part.endsWith("\\");
  }
  return cells.map((cell) => spansOf(cell.trim()));
}

function tableOf(lines, i) {
  const body = element("tbody");
  let end = i + 2;
  for (; end < lines.length && lines[end].includes("|"); end++) body.append(element("tr", {}, ...cellsOf(lines[end]).map((cell) => element("td", {}, ...cell))));
  return { end, node: element("div", { class: "scroll", role: "group", "aria-label": "Table", tabindex: 0 }, element("table", {},
    element("thead", {}, element("tr", {}, ...cellsOf(lines[i]).map((cell) => element(cell.length ? "th" : "td", cell.length ? { scope: "col" } : {}, ...cell)))), body)) };
}

// spansOf returns what a text in a block consists of.
function spansOf(text) {
  const open = [{ nodes: [] }]; // the outermost, and the emphasis that is not closed yet
  const add = (node) => {
    const { nodes } = open[open.length - 1];
    if (typeof node === "string" && typeof nodes[nodes.length - 1] === "string") nodes[nodes.length - 1] += node;
    else if (node !== "") nodes.push(node);
  };
  const drop = () => { // shows the mark of what is not closed
    const { mark, nodes } = open.pop();
    add(mark);
    nodes.forEach(add);
  };
  const ticks = new Map(); // where the rows of backticks of each length are
  for (const row of text.matchAll(/`+/g)) {
    if (!ticks.has(row[0].length)) ticks.set(row[0].length, []);
    ticks.get(row[0].length).push(row.index);
  }
  for (const places of ticks.values()) places.reverse();

  const starts = new RegExp(spanStart);
  let at = 0;
  for (let found; (found = starts.exec(text));) {
    add(text.slice(at, found.index));
    const mark = found[0];
    at = starts.lastIndex;
    if (mark[0] === "\\") add(mark[1]);
    else if (mark[0] === "`") at = codeSpan(text, found.index, mark.length, ticks.get(mark.length), add);
    else if (mark.endsWith("[")) at = linkText(text, found.index, mark, add);
    else emphasis(text, found.index, mark, open, add, drop);
    starts.lastIndex = at;
  }
  add(text.slice(at));
  while (open.length > 1) drop();
  return open[0].nodes;
}

// codeSpan and linkText add what begins at a place, and return where it ends.
function codeSpan(text, from, length, places, add) {
  while (places.length && places[places.length - 1] <= from) places.pop();
  if (!places.length) {
    add("`".repeat(length));
    return from + length;
  }
  const code = text.slice(from + length, places[places.length - 1]).replace(/\n/g, " ");
  add(element("code", {}, code.startsWith(" ") && code.endsWith(" ") && code.trim() ? code.slice(1, -1) : code));
  return places[places.length - 1] + length;
}

function linkText(text, from, mark, add) {
  linkHere.lastIndex = from;
  const found = linkHere.exec(text);
  if (!found) {
    add(mark);
    return from + mark.length;
  }
  const [all, label, address, title] = found;
  if (mark[0] === "!") add("image: ");
  if (label !== address) spansOf(label).forEach(add);
  add(element("span", { class: "address" }, label === address ? address : ` (${[address, title].filter(Boolean).join(", ")})`));
  return from + all.length;
}

function emphasis(text, from, mark, open, add, drop) {
  const char = mark[0], before = text[from - 1] ?? " ", after = text[from + mark.length] ?? " ";
  const inWord = char === "_" && /[\p{L}\p{N}_]/u.test(before) && /[\p{L}\p{N}_]/u.test(after);
  let left = mark.length;
  while (left > 0 && !/\s/.test(before) && !inWord) {
    let i = open.length - 1;
    while (i > 0 && !(open[i].mark[0] === char && open[i].mark.length <= left && (char !== "_" || !/[\p{L}\p{N}]/u.test(after)))) i--;
    if (i === 0) break;
    while (open.length - 1 > i) drop();
    const { mark: opening, nodes } = open.pop();
    if (char === "~") add(element("s", {}, ...nodes));
    else add(opening.length === 1 ? element("em", {}, ...nodes) : opening.length === 2 ? element("strong", {}, ...nodes) : element("strong", {}, element("em", {}, ...nodes)));
    left -= opening.length;
  }
  const rest = char.repeat(left);
  if (left > 0 && left <= 3 && !/\s/.test(after) && !inWord && open.length <= openSpans) open.push({ mark: rest, nodes: [] });
  else add(rest);
}
