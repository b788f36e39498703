// A unified diff in colours.

import { el, button, copier } from "./dom.js";
import { visible, compact, cut, size } from "./text.js";

const FIRST = 200;
const STEP = 2000;
const LONGEST = 1000;

/** How many lines a diff adds and removes. */
export function counts(diff) {
  let added = 0, removed = 0;
  for (const line of body(diff)) {
    if (line[0] === "+") added++;
    else if (line[0] === "-") removed++;
  }
  return { added, removed };
}

/** The same in words and colours. */
export function tally(diff) {
  const { added, removed } = counts(diff);
  return el("span", { class: "tally" },
    el("ins", { "aria-label": `${added} lines added` }, `+${added}`), " ", el("del", { "aria-label": `${removed} lines removed` }, `\u2212${removed}`));
}

/** Its lines from the first hunk on: the names of the files stand elsewhere. */
function body(diff) {
  const lines = String(diff).replace(/\n$/, "").split("\n");
  const first = lines.findIndex((line) => line.startsWith("@@"));
  return first < 0 ? lines : lines.slice(first);
}

function row(line, longest) {
  const kind = { "+": "added", "-": "removed", "@": "hunk", "\\": "note" }[line[0]] ?? "same";
  const shown = line.length > longest ? `${cut(line, longest)}\u2026 (${size(line.length - longest)} more)` : line;
  return el(kind === "added" ? "ins" : kind === "removed" ? "del" : "span", { class: kind }, visible(shown) + "\n");
}

/** The diff. Before somebody allows it (`whole`), no line is cut and nothing can be pushed out of sight. */
export function diffView(diff, label, { whole = false } = {}) {
  const lines = whole ? body(diff).map((line) => (line[0] ?? "") + compact(line.slice(1))) : body(diff);
  const pre = el("pre", { class: "diff", tabindex: "0", role: "group", "aria-label": label ?? "Changes" });
  const box = el("div", { class: "long" }, pre);
  let at = 0;
  const show = (count) => {
    pre.append(...lines.slice(at, at + count).map((line) => row(line, whole ? Infinity : LONGEST)));
    at += count;
  };
  show(FIRST);
  if (at < lines.length) {
    const bar = el("p", { class: "more" }, button(`Show ${lines.length - at} more lines`, (node) => {
      show(STEP);
      if (at >= lines.length) bar.remove();
      else node.textContent = `Show ${lines.length - at} more lines`;
    }, { class: "quiet" }), copier("Copy all", () => String(diff)));
    box.append(bar);
  }
  box.isWhole = () => at >= lines.length;
  return box;
}
