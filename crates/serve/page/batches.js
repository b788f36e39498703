// Many prompts at once: how far each batch is, and what came of its jobs.

import { el, put, button } from "./dom.js";
import { oneLine, visible, name, figure, span, money, moment, short } from "./text.js";
import { get, listed, path } from "./api.js";
import { badge, address, ageing, heading, empty, facts, poll, fillRows } from "./app.js";

const done = (batch) => (batch.succeeded ?? 0) + (batch.failed ?? 0);
const all = (batch) => batch.jobs ?? batch.known ?? 0;
/** How far it is stands beside what it is. */
const flat = (batch) => ({ ...batch, ...(batch.progress ?? {}) });
const stateOf = (batch) => (batch.state === "running" && batch.phase && batch.phase !== "going" ? batch.phase : batch.state);
// So many results are shown as they come; more only when somebody asks.
const FEW = 300;

export function show(root, _route, signal) {
  const list = el("div");
  put(root, heading("Batches"), list);
  poll(list, signal, () => 3000, async () => {
    const answer = await get("/v1/batches", { signal });
    const batches = (answer.batches ?? answer).map(flat);
    fillRows(list, batches, (batch) => batch.id, row, empty("There are no batches. ", el("code", null, "alhena batch JOBS"), " begins one."));
  });
}

function row(batch) {
  return el("li", null, el("a", { href: address("batch", batch.id), "data-id": batch.id },
    el("span", { class: "kind" }, "Batch"), el("bdi", { class: "title" }, oneLine(batch.title || batch.id, 120)), badge(stateOf(batch)),
    el("span", { class: "doing" }, progress(batch)),
    el("span", { class: "meta" }, used(batch), batch.state === "running" ? ageing(batch.started_at) : moment(batch.started_at))));
}

function progress(batch) {
  return [el("progress", { max: Math.max(all(batch), 1), value: done(batch), "aria-label": "Done" }), ` ${figure(done(batch))} of ${figure(all(batch))}`, batch.failed ? el("span", { class: "bad" }, `, ${figure(batch.failed)} failed`) : null];
}

function used(batch) {
  const spent = batch.spent ?? {};
  const tokens = spent.tokens ?? batch.tokens, cost = spent.cost_usd ?? batch.cost_usd;
  return el("span", null, [tokens ? `${short(typeof tokens === "object" ? tokens.total : tokens)} tokens` : null, cost !== undefined && cost !== null ? money(cost) : null].filter(Boolean).join(" \u00b7 "));
}

/** One batch. */
export function showOne(root, route, signal) {
  const base = path`/v1/batches/${route.id}`;
  const head = el("div"), running = el("div"), results = el("div");
  const body = el("div", null, head, running, results);
  put(root, heading(oneLine(route.id, 80)), body);
  let seen = -1;
  poll(body, signal, () => 2000, async () => {
    const batch = flat(await get(base, { signal }));
    root.dataset.state = batch.state;
    put(root.querySelector(".heading"), el("h1", { id: "title", tabindex: "-1" }, el("bdi", null, oneLine(batch.title || batch.id, 120))), badge(stateOf(batch)));
    put(head, el("p", { class: "whole" }, progress(batch)), facts([
      ["Began", moment(batch.started_at)], ["Jobs from", name(batch.jobs_from)], ["Results in", name(batch.results_in)], ["Succeeded", figure(batch.succeeded)], ["Failed", figure(batch.failed)], ["Repeated", batch.repeated ? figure(batch.repeated) : null],
      ["Used", used(batch)], ["A minute", batch.state === "running" && batch.per_minute ? batch.per_minute.toFixed(1) : null], ["Left", batch.state === "running" && batch.left_ms ? span(batch.left_ms) : null], ["Held by the rate limit", batch.held_ms ? span(batch.held_ms) : null],
    ]));
    put(running, batch.state === "running" && batch.running?.length ? el("section", { "aria-label": "At work" }, el("h2", null, "At work"), el("ul", { class: "plain" }, batch.running.slice(0, 50).map((job) => el("li", null, el("b", null, visible(job.id)), ` ${span(job.for_ms)} `, el("bdi", null, oneLine(job.doing, 120)))))) : null);
    const count = done(batch);
    if (count === seen) return;
    if (count <= FEW) await load();
    else if (!results.firstChild) put(results, button(`Show ${figure(count)} results`, load));
    // What could not be loaded is asked for again.
    seen = count;
  });
  const load = async () => {
    const rows = listed(await get(`${base}/results`, { signal, as: "text" }) || "[]", "results");
    put(results, rows.length ? el("section", { "aria-label": "Results" }, el("h2", null, "Results"), el("div", { class: "wide", tabindex: "0" }, el("table", { class: "results" },
      el("thead", null, el("tr", null, ["Job", "Status", "Took", "Answer"].map((label) => el("th", { scope: "col" }, label)))),
      el("tbody", null, rows.slice(-500).reverse().map(result)))), rows.length > 500 ? el("p", { class: "note" }, `The last 500 of ${figure(rows.length)}.`) : null) : null);
  };
}

function result(one) {
  const outcome = one.outcome ?? one;
  return el("tr", null, el("th", { scope: "row" }, visible(one.id)), el("td", null, badge(outcome.status ?? one.status)), el("td", null, outcome.duration_ms !== undefined ? span(outcome.duration_ms) : ""),
    el("td", null, el("bdi", null, oneLine(outcome.failure?.message ?? outcome.final_text ?? outcome.text ?? "", 200))));
}
