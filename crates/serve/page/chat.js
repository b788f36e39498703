// A conversation: what is said, and what is asked before a tool runs.

import { el, put, keep, say, ask } from "./dom.js";
import { oneLine, visible, compact, name, long } from "./text.js";
import { get, post, patch, remove, follow, path } from "./api.js";
import { me, now, heading, retitle, folder, facts, trouble, act, mayAct, attempt, ageing, spent, settle } from "./app.js";
import { Transcript, failure } from "./transcript.js";
import { diffView } from "./diff.js";

/** Whether a tool has arguments that can be shown. */
const given = (input) => input !== undefined && input !== null && JSON.stringify(input) !== "{}";

/** A question before a tool runs: what it would do in view, and three answers. */
function question(permission, answer) {
  const told = el("div");
  const reason = el("input", { type: "text", maxlength: "2000", placeholder: "Why not (the agent is told)", "aria-label": "Why not" });
  // To say no is never a mistake that costs something.
  const may = (decision) => !card.matches("[data-stale] *") && (decision === "reject" || !card.matches(".fresh"));
  // Nobody allows what could not be seen.
  const parts = [
    permission.command ? long(compact(permission.command), { original: permission.command, label: "Command", first: 4000, lines: 30 }) : null,
    permission.diff ? diffView(permission.diff, "What it would change", { whole: true }) : null,
    !permission.command && !permission.diff && given(permission.input) ? long(JSON.stringify(permission.input, null, 2), { label: "Input", lines: 20 }) : null,
  ].filter(Boolean);
  // Without its input, only the title is known, which Gemini CLI 0.61.0 cuts after 100 characters.
  const untold = !parts.length;
  const seen = (decision) => {
    const all = decision === "reject" || parts.every((part) => part.isWhole());
    if (!all) put(told, el("p", { class: "error", role: "alert" }, "There is more of it. Look at all of it first."));
    return all;
  };
  const decide = (decision) => may(decision) && seen(decision) && attempt(told, () => answer(permission.id, { decision, ...(decision === "reject" && reason.value.trim() ? { reason: reason.value.trim() } : {}) }));
  // What "always" covers, as the server remembers it.
  const same = permission.command ? "this command" : permission.diff || permission.path ? "this file" : "this tool";
  // Under a lower limit the server takes no such answer.
  const mayAlways = !permission.elsewhere && !untold && (me.max_approval === "yolo" || me.max_approval === "auto-edit" && permission.diff != null);
  const card = el("section", { class: "asked", tabindex: "-1", "data-permission": permission.id, "data-tool": permission.tool, "aria-label": "The agent asks" },
    el("h2", null, "May it? ", el("bdi", null, untold ? visible(compact(permission.title || permission.tool)) : oneLine(permission.title || permission.tool, 160))),
    untold ? el("p", { class: "warning", "data-untold": true }, "Not everything is shown: the agent tells no more of it than this, and may have cut it.") : null,
    el("p", { class: "note" }, visible(permission.tool ?? ""), permission.path ? [" \u00b7 ", name(permission.path, { class: "path" })] : null, permission.background ? " \u00b7 goes on in the background" : null),
    permission.elsewhere ? el("p", { class: "note", "data-elsewhere": true }, "Not in the folder of this conversation: ", el("bdi", null, visible(permission.elsewhere))) : null,
    parts,
    mayAct() ? [
      el("form", { class: "acts", onsubmit: (event) => { event.preventDefault(); decide("reject"); } },
        act("Allow once", () => decide("allow"), { class: "primary", "data-decide": "allow" }),
        mayAlways ? act(`Always ${same}`, () => decide("always"), { "data-decide": "always", title: "In this conversation it is not asked about again" }) : null,
        el("span", { class: "reject" }, reason, el("button", { type: "submit", class: "danger", "data-decide": "reject", "data-acts": true }, "Reject"))),
      el("p", { class: "note keys" }, "With this in focus: ", el("kbd", null, "y"), " allow once, ", el("kbd", null, "r"), " reject with a reason"),
    ] : el("p", { class: "note" }, "This token may only watch: somebody else has to answer."),
    told);
  card.addEventListener("keydown", (event) => {
    if (event.target !== card || event.ctrlKey || event.metaKey || event.altKey || event.repeat || !mayAct()) return;
    if (event.key === "y") decide("allow");
    else if (event.key === "r") reason.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return card;
}

/** What was written and not sent, by conversation. */
const drafts = new Map();

export function show(root, route, signal) {
  const id = route.id, base = path`/v1/conversations/${id}`;
  const head = el("div"), told = el("div"), asked = el("div", { class: "asking", role: "region", "aria-label": "Questions of the agent" }), below = el("div");
  const transcript = new Transcript();
  transcript.follows = true;
  const typed = el("textarea", { id: "say", rows: "2", placeholder: "Message (Enter sends)", "aria-label": "Message", value: drafts.get(id) ?? "", oninput: () => drafts.set(id, typed.value) });
  const sending = mayAct() ? el("form", { class: "composer", onsubmit: (event) => { event.preventDefault(); send(); } }, typed,
    el("button", { type: "submit", class: "primary", "data-acts": true }, "Send"), act("Stop", cancel, { class: "danger", id: "stop" })) : null;
  // There may be no such conversation.
  if (sending) sending.hidden = true;
  put(root, heading("Chat"), head, told, transcript.node, asked, sending, below);
  const closing = act("Close", close, { id: "close" });
  const open = new Map();
  // What was answered is not asked again by what the server said before.
  const answered = new Set();
  let chat;

  typed.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });

  async function send() {
    const text = typed.value;
    if (!text.trim() || chat?.state === "closed") return;
    if (root.closest("[data-stale]")) return put(told, el("p", { class: "note", role: "alert" }, "Cut off from the server: this has to wait."));
    await attempt(told, async () => {
      await post(`${base}/prompt`, { text });
      // What was written meanwhile is the next one.
      if (typed.value === text) typed.value = "";
      if (drafts.get(id) === text) drafts.delete(id);
    });
  }

  async function cancel() {
    await attempt(told, () => post(`${base}/cancel`));
  }

  async function close() {
    const sure = await ask("Close this conversation?", el("p", null, "Its agent ends. What was said stays in its session."), [["yes", "Close it", "danger"], ["", "Leave it open"]]);
    if (sure) await attempt(told, async () => { await remove(base); await load(); });
  }

  const answer = async (permission, body) => {
    await post(path`/v1/conversations/${id}/permissions/${permission}`, body);
    resolved(permission);
    say(body.decision === "reject" ? "Rejected." : "Allowed.");
  };

  const resolved = (permission) => {
    answered.add(permission);
    shut(permission);
  };

  const shut = (permission) => {
    const card = open.get(permission);
    if (!card) return;
    const focused = card.contains(document.activeElement);
    open.delete(permission);
    card.remove();
    if (!focused) return;
    const next = asked.querySelector(".asked");
    if (next) settle(next);
    // Not into the field: the keys for the next question have to be heard.
    (next ?? root.querySelector("h1")).focus({ preventScroll: true });
  };

  const pend = (permission) => {
    if (open.has(permission.id) || answered.has(permission.id)) return;
    const card = question(permission, answer);
    open.set(permission.id, card);
    settle(card);
    asked.append(card);
    card.scrollIntoView({ block: "nearest" });
    say(`The agent asks: ${oneLine(permission.title || permission.tool, 120)}`);
  };

  const draw = () => {
    const item = now.find("conversation", id);
    root.dataset.state = chat.state;
    const working = chat.state === "working" || chat.state === "waiting" || chat.state === "starting";
    const closed = chat.state === "closed";
    retitle(root.querySelector(".heading"), oneLine(chat.title || item?.title || "Chat", 120), chat.state, closed ? null : closing);
    const select = el("select", { "aria-label": "Approval", onchange: () => attempt(told, async () => { await patch(base, { mode: select.value }); await load(); }) },
      [...new Set([...(chat.mode ? [chat.mode] : []), ...me.approvals])].map((mode) => el("option", { value: mode, selected: mode === chat.mode }, mode)));
    const model = el("input", { type: "text", value: chat.model ?? "", "aria-label": "Model", list: "models", placeholder: "as set", onchange: () => attempt(told, async () => { await patch(base, { model: model.value }); await load(); }) });
    const editing = head.contains(document.activeElement) && ["INPUT", "SELECT"].includes(document.activeElement.tagName);
    const figures = item ?? chat;
    if (!editing) keep(head, [chat.dir, chat.model, chat.mode, chat.turns, closed, chat.session_id, figures.tokens, figures.cost_usd], () => facts([
      ["Folder", folder(chat.dir)],
      ["Model", mayAct() && !closed ? model : visible(chat.model ?? "")],
      ["Approval", mayAct() && !closed ? select : visible(chat.mode ?? "")],
      ["Turns", chat.turns],
      ["Spent", spent(figures)],
      ["Age", closed ? null : ageing(chat.created_at)],
      ["Session", chat.session_id ? el("a", { href: `#/session/${encodeURIComponent(chat.session_id)}` }, visible(chat.session_id).slice(0, 8)) : null],
    ]));
    if (sending) {
      sending.hidden = closed;
      sending.querySelector("#stop").hidden = !working;
      sending.querySelector("[type=submit]").disabled = working;
    }
    keep(below, closed, () => closed ? [chat.failure ? failure(chat.failure) : null, el("p", { class: "note" }, "This conversation is closed. ", chat.session_id && mayAct() ? el("a", { href: `#/start?${new URLSearchParams({ chat: "1", resume: chat.session_id, dir: chat.dir ?? "" })}` }, "Go on in a new one") : null)] : null);
    for (const permission of chat.permissions ?? []) pend(permission);
    const pending = new Set((chat.permissions ?? []).map((permission) => permission.id));
    for (const known of [...open.keys()]) if (!pending.has(known)) shut(known);
  };

  // Answers overtake each other: nothing is drawn over what was asked for later.
  let sent = 0, drawn = 0;
  const load = async () => {
    const number = ++sent, answer = await get(base, { signal });
    if (number < drawn) return;
    drawn = number;
    chat = answer;
    draw();
  };

  let soon;
  const reload = () => {
    clearTimeout(soon);
    soon = setTimeout(() => load().catch(() => {}), 60);
  };

  let stream;
  const over = () => {
    stream.close();
    transcript.close();
    root.toggleAttribute("data-stale", false);
  };
  const listen = () => {
    stream = follow(`${base}/events`, {
      onstate: (state, more) => {
        root.toggleAttribute("data-stale", state === "cut" || state === "denied");
        if (state === "gone") put(told, trouble(more));
        if (state === "live" || state === "ended") reload();
        // The stream of a closed conversation ends for good.
        if (state === "cut") load().then(() => chat.state === "closed" && over(), () => {});
      },
      onevent: (event) => {
        transcript.push(event);
        if (event.type === "permission_resolved") resolved(event.id);
        if (["permission", "permission_resolved", "turn_finished", "prompt", "started", "closed"].includes(event.type)) reload();
        return event.type === "closed" ? "end" : undefined;
      },
    });
  };
  load().then(listen, (error) => { if (!signal.aborted) put(told, trouble(error)); });
  now.addEventListener("change", () => { if (chat && chat.state !== "closed") reload(); }, { signal });
  signal.addEventListener("abort", () => { stream?.close(); clearTimeout(soon); });
  return { ask: () => asked.querySelector(".asked")?.focus(), stop: () => mayAct() && chat && !["idle", "closed"].includes(chat.state) && ask("Stop this turn?", el("p", null, "The conversation goes on."), [["yes", "Stop it", "danger"], ["", "Leave it"]]).then((yes) => yes && cancel()) };
}
