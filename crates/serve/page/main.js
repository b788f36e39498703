// The page begins here: who looks, which view, which key.

import { el, put, ask } from "./dom.js";
import { get } from "./api.js";
import { link } from "./link.js";
import { me, now, listen, mayAct, waits, trouble, heading } from "./app.js";
import * as nowView from "./now.js";
import * as runs from "./runs.js";
import * as run from "./run.js";
import * as chats from "./chats.js";
import * as chat from "./chat.js";
import * as sessions from "./sessions.js";
import * as session from "./session.js";
import * as usage from "./usage.js";
import * as terminals from "./terminals.js";
import * as batches from "./batches.js";
import * as doctor from "./doctor.js";
import * as start from "./start.js";

const VIEWS = {
  now: nowView.show, start: start.show, runs: runs.show, run: run.show, chats: chats.show, chat: chat.show, sessions: sessions.show, session: session.show,
  usage: usage.show, terminals: terminals.show, terminal: terminals.showOne, batches: batches.show, batch: batches.showOne, doctor: doctor.show,
};
/** The menu: view, name, the key after `g`, and which views stand below it. */
const MENU = [
  ["now", "Now", "n"], ["start", "Start", "a"], ["runs", "Runs", "r", "run"], ["chats", "Chats", "c", "chat"], ["sessions", "Sessions", "s", "session"],
  ["usage", "Usage", "u"], ["terminals", "Terminals", "t", "terminal"], ["batches", "Batches", "b", "batch"], ["doctor", "Doctor", "d"],
];

const main = document.getElementById("main"), nav = document.getElementById("nav"), menu = document.getElementById("menu");
let leaving, view, shown;

function route() {
  const [where, query] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const [name, id] = where.split("/");
  let decoded = "";
  try { decoded = decodeURIComponent(id ?? ""); } catch { /* Then there is none. */ }
  // One of many is shown by its id.
  const isOne = MENU.some(([, , , below]) => below === name);
  return { name: isOne && !decoded ? "lost" : name || "now", id: decoded, query: new URLSearchParams(query ?? "") };
}

function go() {
  const to = route();
  leaving?.abort();
  leaving = new AbortController();
  const root = el("div", { class: "view", "data-view": to.name });
  put(main, root);
  try {
    view = (VIEWS[to.name] ?? lost)(root, to, leaving.signal);
  } catch (error) {
    put(root, trouble(error));
  }
  for (const node of nav.querySelectorAll("a")) {
    const here = node.dataset.view === to.name || node.dataset.below === to.name;
    if (here) node.setAttribute("aria-current", "page");
    else node.removeAttribute("aria-current");
  }
  toggle(false);
  scrollTo(0, 0);
  // Whoever reads with ears or keys begins at the heading; the first view leaves the focus where it was.
  if (shown && !root.contains(document.activeElement)) root.querySelector("h1")?.focus();
  shown = true;
}

function lost(root) {
  put(root, heading("There is no such view"), el("p", null, el("a", { href: "#/now" }, "What runs now")));
}

function drawMenu() {
  put(nav, el("ul", null, MENU.filter(([name]) => name !== "start" || mayAct()).map(([name, label, key, below]) => el("li", null,
    el("a", { href: `#/${name}`, "data-view": name, "data-below": below, "aria-keyshortcuts": `g ${key}` }, label, name === "now" ? el("span", { id: "waiting", class: "count", hidden: true }) : null)))),
    el("p", { class: "note" }, el("button", { type: "button", class: "quiet", id: "help", onclick: help }, "Keys ", el("kbd", null, "?"))));
}

function toggle(open) {
  menu.setAttribute("aria-expanded", String(open));
  nav.toggleAttribute("data-open", open);
}

function help() {
  const keys = [["?", "this list"], ["s", "start a run"], ["/", "search or filter"], ["j k", "next and last in a list"], ["p", "what the agent asks (in a chat)"], ["y", "allow once, with a question in focus"], ["r", "reject with a reason, with a question in focus"], ["x", "stop what is shown"], ["i", "write"], ["Esc", "leave a field"],
    ...MENU.map(([, label, key]) => [`g ${key}`, label])];
  ask("Keys", el("dl", { class: "keys" }, keys.filter(([key]) => mayAct() || !["s", "y", "r", "x", "i", "g a"].includes(key)).map(([key, what]) => el("div", null, el("dt", null, key.split(" ").map((one) => el("kbd", null, one))), el("dd", null, what)))), [["", "Close"]]);
}

// When `g` was pressed, not when it was heard: a page that is busy hears late.
let prefix = -Infinity;
function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  const inField = event.target.matches?.("input, textarea, select");
  if (event.key === "Escape" && inField) return event.target.blur();
  if (inField) return;
  if (event.timeStamp - prefix < 1500) {
    prefix = -Infinity;
    const to = MENU.find(([, , key]) => key === event.key);
    if (to && (to[0] !== "start" || mayAct())) {
      event.preventDefault();
      location.hash = `#/${to[0]}`;
    }
    return;
  }
  const acts = {
    g: () => { prefix = event.timeStamp; },
    "?": help,
    s: () => mayAct() && (location.hash = "#/start"),
    "/": () => main.querySelector("input[type=search]")?.focus(),
    j: () => move(1),
    k: () => move(-1),
    p: () => view?.ask?.(),
    x: () => !document.querySelector("[data-stale]") && view?.stop?.(),
    i: () => main.querySelector("#say")?.focus(),
  };
  if (!Object.hasOwn(acts, event.key)) return;
  event.preventDefault();
  acts[event.key]();
}

function move(by) {
  const rows = [...main.querySelectorAll(".rows > li > a, .transcript > details > summary")].filter((node) => node.checkVisibility());
  const at = rows.indexOf(document.activeElement);
  rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + by, 0), rows.length - 1)]?.focus();
}

/** Waits until the server says who looks. */
async function begin() {
  for (let wait = 500; ; wait = Math.min(wait * 2, 10_000)) {
    try {
      Object.assign(me, await get("/v1/me"));
      break;
    } catch (error) {
      if (error.status === 401) return;
      link.is("cut", Date.now() + wait);
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
  document.documentElement.dataset.access = me.access;
  document.getElementById("access").hidden = mayAct();
  drawMenu();
  now.addEventListener("change", () => {
    const count = now.items.filter(waits).length, place = document.getElementById("waiting");
    place.hidden = !count;
    place.textContent = String(count);
    place.title = `${count} waiting for you`;
  });
  addEventListener("hashchange", go);
  document.addEventListener("keydown", pressed);
  // What could not be asked while nobody answered is asked now, unless somebody writes there.
  link.addEventListener("change", () => {
    const written = [...main.querySelectorAll("input, textarea")].some((field) => field.value.trim());
    if (link.live && main.querySelector("[data-unreached]") && !written) go();
  });
  listen();
  go();
}

menu.addEventListener("click", () => toggle(menu.ariaExpanded !== "true"));
document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
begin();
