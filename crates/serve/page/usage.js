// What was spent: by day, by model, by folder; tokens and money. Drawn, and as figures.

import { el, put, copier } from "./dom.js";
import { visible, figure, short, money } from "./text.js";
import { get, LONG } from "./api.js";
import { heading, trouble, empty } from "./app.js";
import { columns, bars } from "./plot.js";

const PARTS = [["fresh", "sent, not cached"], ["cached", "sent, cached"], ["output", "answers"], ["thoughts", "thoughts"]];
const COLUMNS = [["total", "Tokens"], ["prompt", "Sent"], ["cached", "Cached"], ["output", "Answers"], ["thoughts", "Thoughts"], ["tool", "Tools"], ["answers", "Calls"]];
const DAY = 86_400_000;

const since = (days) => (days ? new Date(Date.now() - (days - 1) * DAY).toISOString().slice(0, 10) : "");

/** Days without anything are days too. */
function everyDay(rows, from) {
  const known = Object.keys(rows).filter((day) => /^\d{4}-\d\d-\d\d$/.test(day)).sort();
  if (!known.length) return [];
  const out = [], last = Date.parse(new Date().toISOString().slice(0, 10));
  let at = Math.max(Date.parse(from || known[0]), last - 366 * DAY);
  if (!from) at = Math.min(at, last - 6 * DAY);
  for (; at <= last; at += DAY) out.push(new Date(at).toISOString().slice(0, 10));
  return out;
}

const cost = (row, currency) => (row.cost === undefined ? (row.unpriced?.length ? "?" : "") : `${row.at_least || row.unpriced?.length ? "\u2265 " : ""}${money(row.cost, currency)}`);

/** The figures, to be read out and copied. */
function table(by, keys, answer) {
  const line = (label, row) => el("tr", null, el("th", { scope: "row" }, el("bdi", null, visible(label))), COLUMNS.map(([key]) => el("td", { "data-column": key }, figure(row[key]))), el("td", { "data-column": "cost" }, cost(row, answer.currency)));
  const plain = () => [[by, ...COLUMNS.map(([key]) => key), "cost", answer.currency].slice(0, -1), ...keys.map((key) => [key, answer.rows[key]]).concat([["total", answer.total]]).map(([key, row]) => [key.replace(/[\t\r\n]/g, " "), ...COLUMNS.map(([name]) => row[name] ?? 0), row.cost ?? ""])].map((cells) => cells.join("\t")).join("\n");
  return el("details", { class: "data", open: keys.length <= 14 },
    el("summary", null, "Figures"),
    el("div", { class: "wide", tabindex: "0" }, el("table", { class: "figures", "data-by": by },
      el("caption", { class: "unseen" }, `Tokens and cost by ${by}`),
      el("thead", null, el("tr", null, el("th", { scope: "col" }, by[0].toUpperCase() + by.slice(1)), COLUMNS.map(([, label]) => el("th", { scope: "col" }, label)), el("th", { scope: "col" }, "Cost"))),
      el("tbody", null, keys.map((key) => line(key, answer.rows[key]))),
      el("tfoot", null, line("Total", answer.total)))),
    el("p", { class: "tools" }, copier("Copy as a table", plain)));
}

function byDay(answer, from) {
  const days = everyDay(answer.rows, from), none = {};
  const row = (day) => answer.rows[day] ?? none;
  const fresh = (one) => Math.max(0, (one.prompt ?? 0) - (one.cached ?? 0));
  const tokens = days.map((day) => ({
    label: day.slice(5), title: `${day}: ${figure(row(day).total)} tokens`,
    parts: [{ kind: "fresh", value: fresh(row(day)) }, { kind: "cached", value: row(day).cached ?? 0 }, { kind: "output", value: row(day).output ?? 0 }, { kind: "thoughts", value: row(day).thoughts ?? 0 }],
  }));
  const paid = days.map((day) => ({ label: day.slice(5), title: `${day}: ${cost(row(day), answer.currency) || money(0, answer.currency)}`, parts: [{ kind: "cost", value: row(day).cost ?? 0 }] }));
  return [
    el("p", { class: "legend" }, PARTS.map(([kind, label]) => el("span", null, el("i", { class: kind, "aria-hidden": "true" }), label))),
    el("div", { class: "plots" }, columns(tokens, { title: "Tokens by day", format: short }), columns(paid, { title: "Cost by day", format: (value) => (answer.currency === "USD" ? "$" : "") + Number(value.toPrecision(2)) })),
    table("day", Object.keys(answer.rows).sort().reverse(), answer),
  ];
}

function byName(by, answer) {
  const keys = Object.keys(answer.rows).sort((one, other) => answer.rows[other].total - answer.rows[one].total);
  const label = (key) => (by === "folder" ? key.split("/").filter(Boolean).at(-1) ?? key : key);
  const most = keys.slice(0, 12);
  return [
    el("div", { class: "plots" },
      bars(most.map((key) => ({ label: label(key), full: key, value: answer.rows[key].total, shown: short(answer.rows[key].total) })), { title: `Tokens by ${by}` }),
      bars(most.map((key) => ({ label: label(key), full: key, value: answer.rows[key].cost ?? 0, shown: cost(answer.rows[key], answer.currency) })), { title: `Cost by ${by}` })),
    table(by, keys, answer),
  ];
}

export function show(root, route, signal) {
  const body = el("div"), chosen = route.query.get("days") ?? "30";
  const range = el("select", { "aria-label": "Time", onchange: () => { location.hash = `#/usage?days=${range.value}`; } },
    [["7", "7 days"], ["30", "30 days"], ["90", "90 days"], ["0", "All"]].map(([value, label]) => el("option", { value, selected: value === chosen }, label)));
  put(root, heading("Usage", range), body);
  const load = async () => {
    const from = since(Number(chosen));
    const ask = (by) => get(`/v1/usage?${new URLSearchParams({ by, ...(from ? { since: from } : {}) })}`, { signal, patience: LONG });
    const [days, models, folders] = await Promise.all([ask("day"), ask("model"), ask("folder")]);
    if (!Object.keys(days.rows).length) return put(body, empty("Nothing was spent in this time."));
    const total = days.total;
    put(body,
      el("p", { class: "sum" }, el("b", { "data-sum": "tokens" }, figure(total.total)), " tokens in ", figure(total.answers), " calls", total.cost !== undefined ? [", ", el("b", { "data-sum": "cost" }, cost(total, days.currency))] : null),
      el("section", { "aria-label": "By day" }, el("h2", null, "By day"), byDay(days, from)),
      el("section", { "aria-label": "By model" }, el("h2", null, "By model"), byName("model", models)),
      el("section", { "aria-label": "By folder" }, el("h2", null, "By folder"), byName("folder", folders)),
      el("p", { class: "note" }, `Days are UTC; prices of ${visible(days.prices ?? "")}. `, total.unpriced?.length ? `Without the cost of ${total.unpriced.map(visible).join(", ")}. ` : null, "From the sessions that Gemini CLI keeps."));
  };
  load().catch((error) => { if (!signal.aborted) put(body, trouble(error)); });
}
