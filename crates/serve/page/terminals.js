// Interactive agents in tmux: who there is; the live screen of one; what it asks.

import { el, put, keep, ask } from "./dom.js";
import { oneLine, visible, long } from "./text.js";
import { get, post, path, LONG } from "./api.js";
import { badge, address, folder, ageing, heading, retitle, empty, facts, act, mayAct, attempt, trouble, poll, fillRows, settle } from "./app.js";

export function show(root, _route, signal) {
  const list = el("div");
  put(root, heading("Terminals"), list);
  poll(list, signal, () => 3000, async () => {
    const all = await get("/v1/terminals", { signal }).catch(without);
    if (!Array.isArray(all.terminals)) return keep(list, all.message, () => trouble(all));
    delete list.dataset.from;
    fillRows(list, all.terminals, (terminal) => terminal.name, row, empty("There are no terminals. ", el("code", null, "alhena terminal launch"), " makes one."));
  });
}

/** Without tmux nobody knows who there is. It is looked for again: somebody may install it. */
function without(error) {
  if (error.kind === "no_tmux") return error;
  throw error;
}

function row(terminal) {
  return el("li", { class: terminal.status === "waiting" ? "waits" : null }, el("a", { href: address("terminal", terminal.name), "data-id": terminal.name },
    el("span", { class: "kind" }, "Terminal"), el("bdi", { class: "title" }, oneLine(terminal.name, 100)), badge(terminal.status),
    el("span", { class: "doing" }, el("bdi", null, oneLine(terminal.waiting_for?.question ?? terminal.why ?? terminal.message ?? "", 140))),
    el("span", { class: "meta" }, folder(terminal.dir), visible(terminal.model ?? ""), ageing(terminal.started ?? terminal.created))));
}

/** Letters as small as it takes to see whole rows, and no smaller than can be read. How wide they are each browser decides for each size. */
function fit(screen, columns) {
  const room = screen.parentNode.clientWidth - 32, from = `${columns} ${room}`;
  if (screen.dataset.fits === from) return;
  screen.dataset.fits = from;
  const row = el("span", null, "0".repeat(columns));
  screen.append(row);
  for (let size = 12.5; size >= 9; size -= 0.25) {
    screen.style.fontSize = `${size}px`;
    if (row.getBoundingClientRect().width <= room) break;
  }
  row.remove();
}

/** One of them. */
export function showOne(root, route, signal) {
  const base = path`/v1/terminals/${route.id}`;
  const head = el("div"), told = el("div"), asked = el("div"), screen = el("pre", { class: "screen", tabindex: "0", "aria-label": "Screen" });
  const live = el("div", null, head, asked, el("div", { class: "wide" }, screen));
  const typed = el("textarea", { id: "say", rows: "2", placeholder: "Send a message. Enter sends", "aria-label": "Message" });
  const sending = mayAct() ? el("form", { class: "composer", onsubmit: (event) => { event.preventDefault(); send(); } }, typed, el("button", { type: "submit", class: "primary", "data-acts": true }, "Send")) : null;
  // There may be no such terminal.
  if (sending) sending.hidden = true;
  put(root, heading(oneLine(route.id, 80)), told, live, sending);
  typed.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  const send = () => attempt(told, async () => {
    const text = typed.value;
    if (!text.trim()) return;
    await post(`${base}/send`, { text }, { patience: LONG });
    // What was written meanwhile is the next one.
    if (typed.value === text) typed.value = "";
    again();
  });
  // Only what was seen is answered: another question may have come by now.
  const reply = (waiting, body) => !asked.querySelector(".fresh") && attempt(told, async () => {
    await post(`${base}/answer`, { ...body, waiting_for: waiting }, { patience: LONG });
    // The same may be asked once more, and is another question then.
    dialog = "";
    put(asked);
    again();
  });
  const exit = async () => {
    const sure = await ask("Let this agent leave?", el("p", null, "It is asked to, and ended if it does not. Its session stays."), [["yes", "Let it leave", "danger"], ["", "Keep it"]]);
    if (sure) await attempt(told, async () => { await post(`${base}/exit`); location.hash = "#/terminals"; });
  };
  const leaving = act("Exit", exit, { id: "exit" });

  /** There is nothing to be sent to any more, or there never was. */
  const gone = (error) => {
    if (error.status === 404) {
      if (sending) sending.hidden = true;
      leaving?.remove();
    }
    throw error;
  };

  let dialog = "";
  const question = (waiting) => {
    const key = JSON.stringify(waiting ?? null);
    if (key === dialog) return;
    dialog = key;
    if (!waiting) return put(asked);
    const text = el("input", { type: "text", placeholder: waiting.options?.length ? "A word with it" : "Your answer", "aria-label": "Answer" });
    put(asked, el("section", { class: "asked", tabindex: "-1", "aria-label": "The agent asks" },
      el("h2", null, el("bdi", null, oneLine(waiting.question, 200))),
      waiting.detail ? long(waiting.detail, { first: 8000, lines: 400, label: "Details", file: "question.txt" }) : null,
      mayAct() ? el("form", { class: "acts", onsubmit: (event) => { event.preventDefault(); if (text.value.trim()) reply(waiting, { text: text.value }); } },
        (waiting.options ?? []).map((option) => act(`${option.number}. ${oneLine(option.label, 60)}`, () => reply(waiting, { choose: [String(option.number)], ...(text.value.trim() ? { text: text.value } : {}) }), { class: option.selected ? "primary" : null })),
        text, el("button", { type: "submit", "data-acts": true }, "Answer")) : null));
    settle(asked.querySelector(".asked"));
  };

  const again = poll(live, signal, () => (document.hasFocus() ? 700 : 2500), async () => {
    const [terminal, look] = await Promise.all([get(base, { signal }).catch(gone), get(`${base}/screen`, { signal }).catch((error) => { if (error.status === 0) throw error; return null; })]);
    root.dataset.state = terminal.status;
    const text = look ? visible((typeof look === "string" ? look : look.text ?? "").trimEnd()) : "";
    if (screen.textContent !== text) screen.textContent = text;
    screen.hidden = !look;
    if (look?.columns) fit(screen, look.columns);
    retitle(root.querySelector(".heading"), oneLine(terminal.name ?? route.id, 80), terminal.status, leaving);
    const state = JSON.stringify([terminal.status, terminal.model, terminal.approval, terminal.why]);
    if (head.dataset.shown !== state) {
      head.dataset.shown = state;
      put(head, facts([["Folder", folder(terminal.dir)], ["Model", visible(terminal.model ?? "")], ["Approval", visible(terminal.approval ?? "")], ["Gemini CLI", visible(terminal.gemini_version ?? "")], ["Age", ageing(terminal.started ?? terminal.created)], ["Gone", terminal.why ? oneLine(terminal.why, 160) : null]]));
    }
    if (sending) sending.hidden = terminal.status === "exited";
    question(terminal.waiting_for);
  });
}
