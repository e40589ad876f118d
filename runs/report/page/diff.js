// Edits as differences: lines that were removed and added, with some lines around them.
const diffContext = 3, diffCells = 1e6; // the cells bound the work of a comparison

const patchStart = /^(?:\*\*\* Begin Patch|diff --git |@@ -\d|--- [^\n]*\n\+\+\+ )/m;

const isPatch = (text) => patchStart.test(text);

// patchView shows a text that is a difference already, hunksView one without headers of
// files.
const patchView = (text) => diffView(signed(text).map(([sign, line]) => (/^(?:\+\+|--) /.test(line) && sign === line[0] ? ["", sign + line] : [sign, line])));

const hunksView = (text) => diffView(signed(text));

const signed = (text) => text.replace(/\n$/, "").split("\n").map((line) => (line[0] === "+" || line[0] === "-" ? [line[0], line.slice(1)] : ["", line]));

function diffView(lines) {
  const pre = element("pre", { class: "diff", tabindex: 0, role: "group", "aria-label": "Difference" });
  for (const [sign, line] of lines) {
    pre.append(sign === "+" ? element("ins", {}, "+" + line + "\n") : sign === "-" ? element("del", {}, "-" + line + "\n") : line + "\n");
  }
  return pre;
}

// differenceOf returns the lines of two texts with their signs.
function differenceOf(before, after) {
  const a = before === "" ? [] : before.split("\n"), b = after === "" ? [] : after.split("\n");
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const middle = changesOf(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  const same = (line) => [" ", line];
  const lines = [...a.slice(0, head).map(same), ...middle, ...a.slice(a.length - tail).map(same)];
  const near = lines.map(() => false);
  lines.forEach(([sign], i) => { if (sign !== " ") near.fill(true, Math.max(0, i - diffContext), i + diffContext + 1); });
  return lines.flatMap((line, i) => (near[i] ? [line] : i > 0 && !near[i - 1] ? [] : [["", "…"]]));
}

// changesOf compares by the longest common sequence of lines, unless there are too many.
function changesOf(a, b) {
  if (a.length * b.length > diffCells) return [...a.map((line) => ["-", line]), ...b.map((line) => ["+", line])];
  const width = b.length + 1, longest = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let k = b.length - 1; k >= 0; k--) {
      longest[i * width + k] = a[i] === b[k] ? longest[(i + 1) * width + k + 1] + 1 : Math.max(longest[(i + 1) * width + k], longest[i * width + k + 1]);
    }
  }
  const out = [];
  for (let i = 0, k = 0; i < a.length || k < b.length;) {
    if (i < a.length && k < b.length && a[i] === b[k]) { out.push([" ", a[i++]]); k++; }
    else if (k === b.length || (i < a.length && longest[(i + 1) * width + k] >= longest[i * width + k + 1])) out.push(["-", a[i++]]);
    else out.push(["+", b[k++]]);
  }
  return out;
}

// editNames are the members of tool inputs that hold a text before and after an edit.
const editNames = [["old_string", "new_string"], ["old_str", "new_str"], ["old_text", "new_text"], ["oldText", "newText"]];

// editOf returns the difference that an object describes, and the members it is in.
function editOf(value) {
  for (const names of editNames) {
    const [before, after] = names.map((name) => value[name] ?? "");
    if (names.some((name) => typeof value[name] === "string") && typeof before === "string" && typeof after === "string") {
      return { names, lines: differenceOf(before, after) };
    }
  }
  return null;
}

function editBlock({ lines }) {
  return codeBlock("Edit", "edit", lines.map(([sign, line]) => sign + line).join("\n"), diffView(lines.map(([sign, line]) => (sign === " " ? ["", " " + line] : [sign, line]))));
}
