// Everything that runs; what waits for a person stands first.

import { el, put, keep } from "./dom.js";
import { oneLine, visible } from "./text.js";
import { get } from "./api.js";
import { link } from "./link.js";
import { now, waits, badge, address, folder, ageing, spent, heading, empty, mayAct, runState, trouble, fillRows } from "./app.js";

const KINDS = { run: "Run", conversation: "Chat", terminal: "Terminal", batch: "Batch" };

/** Those that are there and wait for nobody. */
const IDLE = ["idle", "completed", "exited", "unknown"];

/** One thing that runs, as a row that leads to it. */
function row(item) {
  const asked = typeof item.waiting === "string" ? item.waiting : item.waiting?.title ?? item.waiting?.question;
  return el("li", { class: waits(item) ? "waits" : null },
    el("a", { href: address(item.kind, item.id), "data-id": item.id },
      el("span", { class: "kind" }, KINDS[item.kind] ?? visible(item.kind)),
      el("bdi", { class: "title" }, oneLine(item.title || item.id, 140)),
      badge(item.state),
      el("span", { class: "doing" }, el("bdi", null, oneLine(asked || item.doing || "", 140))),
      el("span", { class: "meta" }, folder(item.dir), el("span", null, spent(item)), ageing(item.since))));
}

/** A part of the list under its own heading; hidden while it is empty. */
function group(title) {
  const count = el("span", { class: "count" }), rows = el("div");
  const node = el("section", { "aria-label": title, hidden: true }, el("h2", null, title, " ", count), rows);
  return { node, fill: (items, make) => {
    node.hidden = !items.length;
    count.textContent = items.length;
    fillRows(rows, items, (item) => `${item.kind ?? "run"}/${item.id}`, make);
  } };
}

export function show(root, _route, signal) {
  const waiting = group("Waits for you"), working = group("At work"), idle = group("Open"), ended = group("Ended lately");
  const none = el("div"), unseen = el("div");
  ended.node.append(el("p", null, el("a", { href: "#/runs" }, "All runs")));
  put(root, heading("Now", mayAct() ? el("a", { class: "button", href: "#/start" }, "Start") : null), unseen, none, waiting.node, working.node, idle.node, ended.node);
  let running;
  const draw = () => {
    keep(none, now.items && now.items.length, () => !now.items ? empty("Looking\u2026") : now.items.length ? null : empty("Nothing runs. ", mayAct() ? ["Press ", el("kbd", null, "s"), " to start something."] : null));
    if (!now.items) return;
    // Where there is no tmux nobody expects terminals; their own view says so.
    const missed = now.unseen.filter((one) => one.problem.kind !== "no_tmux");
    keep(unseen, missed, () => missed.map((one) => trouble({ message: `${KINDS[one.kind] ?? one.kind}: ${one.problem.detail}`, hint: one.problem.hint })));
    waiting.fill(now.items.filter(waits), row);
    working.fill(now.items.filter((item) => !waits(item) && !IDLE.includes(item.state)), row);
    idle.fill(now.items.filter((item) => !waits(item) && IDLE.includes(item.state)), row);
    const seen = now.items.filter((item) => item.kind === "run").map((item) => item.id).join();
    if (seen !== running) recent();
    running = seen;
  };
  const recent = async () => {
    try {
      ended.fill((await get("/v1/runs?limit=8&state=finished", { signal })).runs, runRow);
    } catch { /* The page says that it is cut off. */ }
  };
  now.addEventListener("change", draw, { signal });
  link.addEventListener("change", () => { if (link.live) recent(); }, { signal });
  draw();
}

/** A run as a row, wherever runs are listed. */
export function runRow(run) {
  const state = runState(run);
  return el("li", null, el("a", { href: address("run", run.id), "data-id": run.id },
    el("span", { class: "kind" }, "Run"),
    el("bdi", { class: "title" }, oneLine(run.prompt || run.id, 140)),
    badge(state),
    el("span", { class: "doing" }, el("bdi", null, oneLine(run.failure?.message ?? run.doing ?? "", 140))),
    el("span", { class: "meta" }, folder(run.dir), el("span", null, spent(run)), el("span", null, ageing(run.finished_at ?? run.started_at ?? run.created_at), run.finished_at ? " ago" : null))));
}
