// As much of Markdown as models write, made of elements. What is not understood stays text.

import { el } from "./dom.js";
import { visible } from "./text.js";

const INLINE = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|(https?:\/\/[^\s<>"'`)\]]+)/g;

/** The pieces of a line. An address is a link that reads as what it is. */
function inline(text) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    parts.push(text.slice(at, found.index));
    if (found[1]) parts.push(el("code", null, found[1]));
    else if (found[2]) parts.push(el("strong", null, found[2]));
    else parts.push(el("a", { href: found[3], target: "_blank", rel: "noopener noreferrer" }, found[3]));
    at = found.index + found[0].length;
  }
  parts.push(text.slice(at));
  return parts;
}

const FENCE = /^\s*(```+|~~~+)/;
const HEADING = /^(#{1,6})\s+(.*)$/;
const ITEM = /^(\s*)([-*+]|\d{1,4}[.)])\s+(.*)$/;
const ROW = /^\s*\|(.+)\|\s*$/;

/** A text as blocks. */
export function blocks(source) {
  const lines = visible(source).split("\n");
  const out = [];
  let paragraph = [];
  const flush = () => {
    if (paragraph.length) out.push(el("p", { dir: "auto" }, paragraph.flatMap((line, at) => (at ? [el("br"), inline(line)] : [inline(line)]))));
    paragraph = [];
  };
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    const fence = FENCE.exec(line);
    if (fence) {
      flush();
      const code = [];
      while (++at < lines.length && !lines[at].trimStart().startsWith(fence[1])) code.push(lines[at]);
      out.push(el("pre", { class: "code", tabindex: "0" }, code.join("\n")));
      continue;
    }
    const heading = HEADING.exec(line);
    if (heading) {
      flush();
      out.push(el("p", { class: "heading", role: "heading", "aria-level": Math.min(6, heading[1].length + 2) }, inline(heading[2])));
      continue;
    }
    if (ITEM.test(line)) {
      flush();
      const first = ITEM.exec(line);
      const list = el(/\d/.test(first[2]) ? "ol" : "ul", { dir: "auto", start: /\d/.test(first[2]) ? parseInt(first[2], 10) : null });
      for (; at < lines.length; at++) {
        const item = ITEM.exec(lines[at]);
        if (item) list.append(el("li", { class: item[1].length > 1 ? "deeper" : null }, inline(item[3])));
        else if (/^\s{2,}\S/.test(lines[at])) list.lastChild.append(" ", ...inline(lines[at].trim()));
        else break;
      }
      at--;
      out.push(list);
      continue;
    }
    if (ROW.test(line) && ROW.test(lines[at + 1] ?? "") && /^[\s|:-]+$/.test(lines[at + 1])) {
      flush();
      const cells = (row) => ROW.exec(row)[1].split("|").map((cell) => cell.trim());
      const head = el("tr", null, cells(line).map((cell) => el("th", null, inline(cell))));
      const body = [];
      for (at += 2; at < lines.length && ROW.test(lines[at]); at++) body.push(el("tr", null, cells(lines[at]).map((cell) => el("td", null, inline(cell)))));
      at--;
      out.push(el("div", { class: "wide", tabindex: "0" }, el("table", null, el("thead", null, head), el("tbody", null, body))));
      continue;
    }
    if (line.trim() === "") flush();
    else paragraph.push(line);
  }
  flush();
  return out;
}

/** Where a text can be parted so that what comes later changes nothing before: after an empty line outside of code and lists. */
export function settled(text) {
  let open = false, at = 0, safe = 0;
  for (const line of text.split("\n")) {
    const next = at + line.length + 1;
    if (FENCE.test(line)) open = !open;
    if (line.trim() === "" && !open && next <= text.length) safe = next;
    at = next;
  }
  return safe;
}
