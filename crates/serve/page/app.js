// What all views share: who looks, what runs, and the pieces that look the same everywhere.

import { el, put, button, say, reconcile } from "./dom.js";
import { visible, name, oneLine, ageing, short, figure, money } from "./text.js";
import { Problem, get } from "./api.js";
import { share } from "./share.js";
import { link } from "./link.js";

/** Who looks at the page; as little as possible until it is known. */
export const me = { access: "read", approvals: [], max_approval: "default" };

/** Whether the token may do something. */
export const mayAct = () => me.access === "full";

/** What runs, as the server said last. `change` is fired at each snapshot. */
class Now extends EventTarget {
  items = null;
  /** What could not be looked at, each with its problem. */
  unseen = [];
  #told = new Set();

  take({ items = [], unseen = [] }) {
    this.items = items;
    this.unseen = unseen;
    const waiting = items.filter(waits);
    document.title = `${waiting.length ? `(${waiting.length}) ` : ""}Alhena`;
    const fresh = waiting.filter((item) => !this.#told.has(`${item.kind}/${item.id}`));
    if (fresh.length) say(`${fresh.length === 1 ? oneLine(fresh[0].title, 80) : `${fresh.length} agents`} waits for you.`);
    this.#told = new Set(waiting.map((item) => `${item.kind}/${item.id}`));
    this.dispatchEvent(new Event("change"));
  }

  find(kind, id) {
    return this.items?.find((item) => item.kind === kind && item.id === id);
  }
}

export const now = new Now();

/** Whether it waits for a person. */
export const waits = (item) => item.state === "waiting" || Boolean(item.waiting);

/** Begins to listen to what runs; the one stream that the page always has, alone or with other windows. */
export function listen() {
  const stream = share("/v1/now/events", {
    onevent: (snapshot) => now.take(snapshot),
    onstate: (state, more) => {
      if (state === "gone") link.is("cut", 0);
      else link.is(state, more);
    },
  });
  link.retry = stream.again;
  // A page that nobody sees has no stream, but its title still tells when somebody is waited for.
  setInterval(async () => {
    if (!document.hidden) return;
    try { now.take(await get("/v1/now")); } catch { /* It is told when somebody looks. */ }
  }, 15_000);
}

/** Where a thing that runs is shown. */
export const address = (kind, id) => `#/${{ conversation: "chat" }[kind] ?? kind}/${encodeURIComponent(id)}`;

/** A state in a word and a colour. */
export function badge(state) {
  return el("span", { class: "badge", "data-state": state ?? "unknown" }, visible(state ?? "unknown").replaceAll("_", " "));
}

/** The state of a run: how it ended, once it has. */
export const runState = (run) => (run.state === "finished" ? run.status ?? "finished" : run.state);

/** Tokens and money, where they are known. */
export function spent(item) {
  const parts = [];
  if (item.tokens) parts.push(el("span", { title: `${figure(total(item.tokens))} tokens` }, `${short(total(item.tokens))} tokens`));
  if (item.cost_usd !== undefined && item.cost_usd !== null) parts.push(el("span", null, money(item.cost_usd)));
  return parts.flatMap((part, at) => (at ? [" \u00b7 ", part] : [part]));
}

/** Tokens come as one figure or as several with their sum. */
const total = (tokens) => (typeof tokens === "object" ? tokens.total : tokens);

/** The last part of a folder, all of it in the title. */
export function folder(dir) {
  if (!dir) return null;
  const parts = String(dir).split("/").filter(Boolean);
  return name(parts.at(-1) ?? "/", { class: "folder", title: visible(dir) });
}

/** An age that goes on while its thing does. */
export { ageing };

/** The head of a view. */
export function heading(title, ...more) {
  return el("div", { class: "heading" }, el("h1", { id: "title", tabindex: "-1" }, title), more);
}

/** A title, a state and what can be done, in the head of a view. What stays is the same element: a button that is made anew under a finger is not pressed. */
export function retitle(node, title, state, ...acts) {
  const [h1, mark] = node.children, shown = acts.filter(Boolean);
  if (h1.firstElementChild?.textContent !== title) put(h1, el("bdi", null, title));
  if (!mark) h1.after(badge(state));
  else if (mark.dataset.state !== (state ?? "unknown")) mark.replaceWith(badge(state));
  for (const one of [...node.children].slice(2)) if (!shown.includes(one)) one.remove();
  shown.forEach((one, at) => { if (node.children[at + 2] !== one) node.insertBefore(one, node.children[at + 2] ?? null); });
}

/** A problem, for people. */
export function trouble(error) {
  if (error?.name === "AbortError") return el("span");
  const hint = error?.hint;
  // Of what was not reached the page asks again when it is.
  return el("div", { class: "failure", role: "alert", "data-unreached": error?.status === 0 }, el("p", null, visible(error?.message ?? error)), hint ? el("p", { class: "hint" }, visible(hint)) : null);
}

/** Does something and tells what went wrong in the place given. */
export async function attempt(place, act) {
  put(place);
  try {
    return await act();
  } catch (error) {
    put(place, trouble(error));
    return undefined;
  }
}

/** A button for something that only a full token may do. */
export function act(label, what, props) {
  return mayAct() ? button(label, what, { "data-acts": true, ...props }) : null;
}

/** Names and values. */
export function facts(rows) {
  return el("dl", { class: "facts" }, rows.filter(([, value]) => value !== null && value !== undefined && value !== "" && !(Array.isArray(value) && !value.length))
    .map(([key, value]) => el("div", null, el("dt", null, key), el("dd", null, value))));
}

/** Rows that lead somewhere, in a place that may have them already; a word when there are none. */
export function fillRows(place, items, keyOf, make, none, look = "rows") {
  if (!items.length) return put(place, none);
  let list = place.querySelector(":scope > ul.rows");
  if (!list) put(place, list = el("ul", { class: look }));
  reconcile(list, items, keyOf, make);
  return place;
}

/** Nothing is there, and what to do about it. */
export const empty = (...text) => el("p", { class: "empty" }, text);

/** Asks again and again while somebody looks, and marks what is shown as old when no answer comes. Stops with the signal. */
export function poll(node, signal, every, look) {
  let timer, busy = false;
  const again = async () => {
    clearTimeout(timer);
    if (signal.aborted || busy) return;
    busy = true;
    if (!document.hidden) {
      try {
        await look();
        delete node.dataset.stale;
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Problem && error.status >= 400 && error.status < 500 && error.status !== 429) {
          put(node, trouble(error));
          return;
        }
        node.dataset.stale = "";
      } finally {
        busy = false;
      }
    }
    busy = false;
    timer = setTimeout(again, every());
  };
  signal.addEventListener("abort", () => clearTimeout(timer));
  link.addEventListener("change", () => { if (link.live) again(); }, { signal });
  again();
  return again;
}

// A question that just came under somebody's finger is not answered by it.
const FRESH = 500;

/** Lets nobody answer for a moment. */
export function settle(card) {
  card.classList.add("fresh");
  clearTimeout(card.settling);
  card.settling = setTimeout(() => card.classList.remove("fresh"), FRESH);
}
