// One run: the transcript as it comes, what it changed and used; stop it, or go on from it.

import { el, put, keep, say, ask } from "./dom.js";
import { oneLine, visible, name, long, moment, span, figure, money } from "./text.js";
import { get, post, follow, path } from "./api.js";
import { now, runState, heading, retitle, folder, facts, trouble, act, mayAct, attempt, ageing } from "./app.js";
import { Transcript } from "./transcript.js";
import { tally } from "./diff.js";
import { formLink, TRUST } from "./start.js";

/** How far a run is, in order. */
const STATES = ["queued", "running", "finished"];

export function show(root, route, signal) {
  const id = route.id;
  const head = el("div"), told = el("div"), end = el("div"), files = el("div"), stale = el("div");
  const transcript = new Transcript();
  put(root, heading("Run"), head, told, stale, files, transcript.node, end);
  // Of a long prompt the run has only the beginning; its event, if it came so far, has all.
  let run, prompt, live = false;
  const changed = new Map();
  const stopping = act("Stop", () => stop(), { class: "danger", id: "stop" });
  const resuming = el("a", { class: "button", id: "resume" }, "Resume");
  /** The same once more: a folder that is not trusted, for example, is nothing to resume. */
  const again = formLink("Start again", "",
    () => ({ prompt: prompt ?? run.prompt, dir: run.dir ?? "", model: run.model ?? "", untrusted: isUntrusted(), isBeginning: prompt === undefined && run.prompt.endsWith("\u2026") }), { class: "button", id: "again" });

  const draw = () => {
    const item = now.find("run", id);
    const state = runState(run);
    const going = run.state !== "finished";
    const outcome = run.outcome;
    root.dataset.state = state;
    const approval = run.approval ? { approval: run.approval } : {};
    resuming.href = `#/start?${new URLSearchParams({ resume: run.session_id ?? "", dir: run.dir ?? "", ...(run.model ? { model: run.model } : {}), ...approval })}`;
    again.href = `#/start${run.approval ? `?${new URLSearchParams(approval)}` : ""}`;
    retitle(root.querySelector(".heading"), oneLine(run.prompt || id, 200), state,
      going && stopping, !going && run.session_id && mayAct() && resuming, !going && state !== "success" && mayAct() && again);
    const cost = outcome?.cost_usd ?? (going ? item?.cost_usd : undefined) ?? run.cost_usd;
    const tokens = outcome?.usage?.total ?? (going ? item?.tokens : undefined) ?? run.tokens;
    const doing = going ? item?.doing ?? run.doing ?? "" : null;
    keep(head, [{ ...run, outcome: Boolean(outcome) }, doing, cost, tokens], () => facts([
      ["Doing", doing ? el("bdi", null, oneLine(doing, 120)) : null],
      ["Folder", folder(run.dir)],
      ["Model", outcome?.models?.length ? outcome.models.map(visible).join(", ") : visible(run.model ?? "")],
      ["Approval", visible(run.approval ?? "")],
      [going ? "For" : "Took", going ? ageing(run.started_at ?? run.created_at) : outcome ? (outcome.duration_ms ? span(outcome.duration_ms) : null) : run.finished_at && run.started_at ? span(Date.parse(run.finished_at) - Date.parse(run.started_at)) : null],
      ["Started", moment(run.started_at ?? run.created_at)],
      ["Tokens", tokens ? el("span", { title: usageTitle(outcome?.usage) }, figure(typeof tokens === "object" ? tokens.total : tokens)) : null],
      ["Cost", cost !== undefined && cost !== null ? `${outcome?.cost_is_lower_bound ? "\u2265 " : ""}${money(cost)}` : null],
      ["Session", run.session_id ? el("a", { href: `#/session/${encodeURIComponent(run.session_id)}` }, visible(run.session_id).slice(0, 8)) : null],
      ["Recording", going ? null : el("a", { href: path`/v1/runs/${id}/recording`, download: `run-${id}.tar` }, "tar")],
    ]));
    // Why it failed stands at the end of the transcript.
    keep(end, [Boolean(outcome), isUntrusted(), transcript.isOver], () => [
      outcome && isUntrusted() && mayAct() ? el("p", { class: "note" }, `To run there all the same: Start again, and tick \u201c${TRUST}\u201d.`) : null, result(outcome)]);
  };

  const usageTitle = (usage) => usage ? ["prompt", "cached", "output", "thoughts", "tool"].map((key) => `${key} ${figure(usage[key])}`).join(", ") : null;

  /** What came of it as data, and what should be known and is not in the transcript. */
  const result = (outcome, warnings = unwarned(outcome)) => outcome ? [
    outcome.data !== undefined && outcome.data !== null ? el("section", { "aria-label": "Data" }, el("h2", null, "Data"), long(JSON.stringify(outcome.data, null, 2), { file: "data.json" })) : null,
    warnings.length ? el("section", { "aria-label": "Warnings" }, el("h2", null, "Warnings"), warnings.slice(0, 100).map((text) => el("p", { class: "warning" }, visible(text)))) : null,
    outcome.usage?.total ? usageTable(outcome.usage) : null,
  ] : null;

  const unwarned = (outcome) => (transcript.isOver ? outcome?.warnings ?? [] : []).filter((text) => !transcript.warned.has(text));

  const drawFiles = () => {
    const all = run?.outcome?.files ?? [...changed.values()];
    put(files, all.length ? el("details", { class: "files", open: all.length <= 12 }, el("summary", null, `${all.length} ${all.length === 1 ? "file" : "files"} changed`),
      el("ul", null, all.slice(0, 200).map((file) => el("li", null, el("span", { class: "state" }, file.change), " ", name(file.path, { class: "path" }), " ",
        file.diff ? tally(file.diff) : null, file.verified ? null : el("em", null, " not on the disk"), file.claimed === false ? el("em", null, " by nobody's word") : null)))) : null);
  };

  const isUntrusted = () => (run.outcome?.failure ?? run.failure)?.kind === "untrusted";

  const stop = async () => {
    await attempt(told, async () => {
      const answer = await post(path`/v1/runs/${id}/cancel`);
      stopping.textContent = "Stop at once";
      take({ ...run, ...answer });
      say("Asked it to stop.");
    });
  };

  // No run goes back: what says that it does was under way for longer.
  const take = (answer) => {
    if (STATES.indexOf(answer.state) < STATES.indexOf(run?.state)) return;
    run = answer;
    draw();
  };

  const load = async () => {
    take(await get(path`/v1/runs/${id}`, { signal }));
    drawFiles();
  };

  const mark = (state, more) => {
    live = state === "live";
    root.toggleAttribute("data-stale", state === "cut" || state === "denied");
    put(stale, state === "cut" && more ? el("p", { class: "note stale" }, "Not live: the transcript is as it was when the connection was lost.") : null);
    if (state === "gone") put(told, trouble(more));
    if (live && run) load().catch(() => {});
  };

  let stream;
  const open = () => {
    // What has ended is read from its beginning.
    transcript.follows = run.state !== "finished";
    stream = follow(path`/v1/runs/${id}/events`, {
      onstate: mark,
      onevent: (event) => {
        transcript.push(event);
        if (event.type === "prompt") prompt ??= event.text;
        if (event.type === "file_change") {
          changed.set(event.path, event);
          drawFiles();
        }
        if (event.type === "started" && run.state === "queued") load().catch(() => {});
        if (event.type !== "finished") return undefined;
        run = { ...run, state: "finished", status: event.outcome.status, session_id: event.outcome.session_id ?? run.session_id, outcome: event.outcome };
        draw();
        drawFiles();
        say(`The run has ended: ${event.outcome.status}.`);
        load().catch(() => {});
        return "end";
      },
    });
  };
  load().then(open, (error) => { if (!signal.aborted) put(told, trouble(error)); });
  now.addEventListener("change", () => { if (run && run.state !== "finished") draw(); }, { signal });
  signal.addEventListener("abort", () => stream?.close());
  return { stop: () => run && run.state !== "finished" && mayAct() && ask("Stop this run?", el("p", null, oneLine(run.prompt, 120)), [["yes", "Stop it", "danger"], ["", "Leave it"]]).then((yes) => yes && stop()) };
}

/** Tokens by model. */
function usageTable(usage) {
  const rows = Object.entries(usage.models ?? {});
  const cells = ["prompt", "cached", "output", "thoughts", "tool", "total"];
  const line = (label, tokens) => el("tr", null, el("th", { scope: "row" }, label), cells.map((key) => el("td", null, figure(tokens[key]))));
  return el("section", { "aria-label": "Usage" }, el("h2", null, "Usage"), el("div", { class: "wide", tabindex: "0" }, el("table", { class: "figures" },
    el("thead", null, el("tr", null, el("th", { scope: "col" }, "Model"), cells.map((key) => el("th", { scope: "col" }, key)))),
    el("tbody", null, rows.map(([model, tokens]) => line(visible(model), tokens)), rows.length === 1 ? null : line("all", usage)))));
}
