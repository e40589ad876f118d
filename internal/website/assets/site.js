"use strict";
// The search. search.js, the text of all pages, is loaded when the reader first needs it.
(() => {
  const most = 15;
  const root = document.documentElement.dataset.root;
  const [form, input, found, count, results] = ["search", "words", "found", "count", "results"].map((id) => document.getElementById(id));
  let loading;

  const index = () => loading ??= new Promise((done, fail) => {
    const script = document.createElement("script");
    script.src = root + "search.js";
    script.onload = () => done(window.searchIndex);
    script.onerror = () => { loading = undefined; fail(new Error("search.js cannot be loaded")); };
    document.head.append(script);
  });

  const times = (text, word) => text.split(word).length - 1;

  // score returns how well a section matches, 0 if a word is missing.
  const score = (page, section, words) => {
    const [title, heading, text] = [page.title, section.heading, section.text].map((s) => s.toLowerCase());
    let sum = times(text, words.join(" ")) * (words.length - 1);
    for (const word of words) {
      const here = 20 * times(heading, word) + 8 * times(title, word) + Math.min(times(text, word), 5);
      if (!here) return 0;
      sum += here;
    }
    return sum + (heading === words.join(" ") ? 50 : 0);
  };

  const element = (name, kind, ...content) => {
    const e = document.createElement(name);
    e.className = kind;
    e.append(...content);
    return e;
  };

  // around returns the text around the first word, with all words marked.
  const around = (text, words) => {
    const lower = text.toLowerCase();
    const first = Math.min(...words.map((w) => lower.indexOf(w)).filter((at) => at >= 0), text.length);
    const begin = first < text.length ? Math.max(0, first - 50) : 0;
    const part = text.slice(begin, begin + 160);
    const pieces = [begin > 0 ? "… " : ""];
    for (let at = 0; at < part.length;) {
      const word = words.find((w) => part.toLowerCase().startsWith(w, at));
      if (word) {
        pieces.push(element("mark", "", part.slice(at, at + word.length)));
        at += word.length;
      } else {
        pieces.push(part[at++]);
      }
    }
    return element("span", "around", ...pieces, begin + 160 < text.length ? " …" : "");
  };

  const show = async () => {
    const query = input.value;
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    found.hidden = !words.length;
    if (!words.length) return;
    let matches = [];
    try {
      for (const page of await index()) {
        for (const section of page.sections) {
          const points = score(page, section, words);
          if (points) matches.push({ page, section, points });
        }
      }
    } catch (e) {
      count.textContent = e.message;
      return;
    }
    if (input.value !== query) return; // a later search shows its results
    matches.sort((a, b) => b.points - a.points);
    count.textContent = matches.length > most ? `The best ${most} of ${matches.length} results` : matches.length === 1 ? "1 result" : `${matches.length || "No"} results`;
    results.replaceChildren(...matches.slice(0, most).map(({ page, section }) => {
      const a = document.createElement("a");
      a.href = root + page.page + (section.anchor && "#" + encodeURIComponent(section.anchor));
      const heading = section.heading || page.title;
      a.append(element("b", "", heading), heading === page.title ? "" : element("span", "of", " · " + page.title), around(section.text, words));
      const item = document.createElement("li");
      item.append(a);
      return item;
    }));
  };

  const close = () => { found.hidden = true; };

  form.hidden = false;
  input.addEventListener("input", show);
  input.addEventListener("focus", show);
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    results.querySelector("a")?.click();
  });
  form.addEventListener("focusout", (e) => { if (e.relatedTarget && !form.contains(e.relatedTarget)) close(); });
  results.addEventListener("click", close);
  document.addEventListener("pointerdown", (e) => { if (!form.contains(e.target)) close(); });
  form.addEventListener("keydown", (e) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (e.key === "Escape") {
      input.value = "";
      close();
      input.focus();
    } else if (step) {
      const stops = [input, ...results.querySelectorAll("a")];
      stops[stops.indexOf(document.activeElement) + step]?.focus();
      e.preventDefault();
    }
  });
  document.addEventListener("keydown", (e) => {
    if (e.key === "/" && !e.ctrlKey && !e.metaKey && !e.altKey && !form.contains(document.activeElement)) {
      e.preventDefault();
      input.focus();
    }
  });
})();
