// Foreign text: what a screen would obey or reorder is shown as a sign, and what is long is shown in parts.

import { el, button, copier, save } from "./dom.js";

const LOW = "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US".split(" ");
const NAMES = {
  0x7f: "DEL", 0x061c: "ALM", 0x200b: "ZWSP", 0x200e: "LRM", 0x200f: "RLM", 0x2028: "LS", 0x2029: "PS", 0x202a: "LRE", 0x202b: "RLE", 0x202c: "PDF",
  0x202d: "LRO", 0x202e: "RLO", 0x2060: "WJ", 0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI", 0xfeff: "BOM",
};
// The same as `is_unsafe_in_text` in `crates/wire/src/display.rs`.
const SIGNS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;
// Colours of terminals mean nothing here.
const COLOURS = /\u001b\[[0-9;:]*m/g;

function sign(found) {
  const code = found.codePointAt(0);
  return `\u27e8${LOW[code] ?? NAMES[code] ?? "U+" + code.toString(16).toUpperCase()}\u27e9`;
}

/** A text as it can be shown: nothing in it acts. */
export function visible(text) {
  return String(text ?? "").replace(/\r\n/g, "\n").replace(COLOURS, "").replace(SIGNS, sign);
}

/** Its first line, cut. */
export function oneLine(text, most = 160) {
  const start = String(text ?? "").slice(0, most * 8).trimStart();
  const line = visible(start.split("\n", 1)[0]);
  return line.length > most || String(text ?? "").trim().length > line.length ? cut(line, most) + "\u2026" : line;
}

/** The beginning of a text, never half a character. */
export function cut(text, at) {
  if (text.length <= at) return text;
  const code = text.charCodeAt(at - 1);
  return text.slice(0, code >= 0xd800 && code <= 0xdbff ? at - 1 : at);
}

/** An element for a name or another short foreign text; its direction stays inside. */
export function name(text, props) {
  return el("bdi", props, oneLine(text, 300));
}

const STEP = 100_000;

/** A text in which nothing can be pushed out of sight: long runs of spaces and of empty lines are told by their length. */
export function compact(text) {
  return String(text ?? "").replace(/\n(?:[^\S\n]*\n){3,}/g, (run) => `\n\u27e8${run.split("\n").length - 2} empty lines\u27e9\n`)
    .replace(/[^\S\n]{24,}/g, (run) => ` \u27e8${run.length} spaces\u27e9 `);
}

/**
 * A text of any size as it is, in a <pre>. `first` characters and `lines` lines are shown, the rest on demand in steps that no
 * browser minds. What is copied and saved is `original`, where something else is shown.
 */
export function long(text, { first = 4000, lines = 40, file = "text.txt", label, original = text } = {}) {
  const whole = String(text ?? "");
  const box = el("div", { class: "long" });
  const show = (part) => box.insertBefore(el("pre", { tabindex: "0", "aria-label": label, dir: "auto" }, visible(part)), bar);
  const bar = el("p", { class: "more" });
  box.append(bar);
  let at = end(whole, first, lines);
  show(whole.slice(0, at));
  const left = el("span");
  const tell = () => {
    if (at >= whole.length) return bar.remove();
    left.textContent = `${size(whole.length - at)} more`;
    more.textContent = whole.length - at > STEP ? `Show ${size(STEP)} of it` : "Show all";
  };
  const more = button("", () => {
    const to = cut(whole.slice(at), STEP).length + at;
    show(whole.slice(at, to));
    at = to;
    tell();
  }, { class: "quiet" });
  bar.append(left, more, copier("Copy all", () => String(original ?? "")), button("Save", () => save(file, String(original ?? "")), { class: "quiet" }));
  tell();
  box.isWhole = () => at >= whole.length;
  return box;
}

/** Where the first so many lines and characters end. */
function end(text, characters, lines) {
  let at = 0;
  for (let line = 0; line < lines; line++) {
    const next = text.indexOf("\n", at);
    if (next < 0 || next > characters) return cut(text, characters).length;
    at = next + 1;
  }
  return at;
}

/** A size in words. */
export function size(characters) {
  if (characters < 1000) return `${characters} characters`;
  return characters < 1_000_000 ? `${Math.round(characters / 1000)} KB` : `${(characters / 1_000_000).toFixed(1)} MB`;
}

/** 12345 as 12.3k; the whole figure is for the title. */
export function short(count) {
  if (count === undefined || count === null) return "";
  for (const [unit, sign] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (count >= unit) return (count / unit).toFixed(count / unit < 100 ? 1 : 0).replace(/\.0$/, "") + sign;
  }
  return String(count);
}

/** A figure in full. */
export const figure = (count) => (count ?? 0).toLocaleString("en-GB");

/** Money; what rounds to nothing is not nothing. */
export function money(amount, currency = "USD") {
  if (amount === undefined || amount === null) return "";
  const digits = amount !== 0 && amount < 0.0995 ? 4 : 2;
  const figure = amount > 0 && amount < 0.00005 ? "<0.0001" : (amount + 1e-9).toFixed(digits);
  return currency === "USD" ? (figure.startsWith("<") ? "<$" + figure.slice(1) : "$" + figure) : `${figure} ${currency}`;
}

/** How long something took or is old. */
export function span(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${String(Math.floor((seconds % 3600) / 60)).padStart(2, "0")} min`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3600)} h`;
}

/** A time of day, with the day when it is another one. */
export function clock(at) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "";
  const time = date.toLocaleTimeString("en-GB", { hour12: false });
  return date.toDateString() === new Date().toDateString() ? time : `${date.toLocaleDateString("en-CA")} ${time.slice(0, 5)}`;
}

/** A moment, as an element. */
export function moment(at, props) {
  return at ? el("time", { datetime: at, title: new Date(at).toString(), ...props }, clock(at)) : null;
}

/** An age that goes on as long as what it stands in is live. */
export function ageing(since) {
  return since ? el("time", { datetime: since, "data-since": Date.parse(since), title: new Date(since).toString() }, span(Date.now() - Date.parse(since))) : null;
}

setInterval(() => {
  for (const node of document.querySelectorAll("time[data-since]")) {
    if (!node.closest("[data-stale]")) node.textContent = span(Date.now() - Number(node.dataset.since));
  }
}, 1000);
