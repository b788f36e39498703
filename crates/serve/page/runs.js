// All runs that the server knows, the newest first.

import { el, put } from "./dom.js";
import { get } from "./api.js";
import { now, heading, empty, trouble, mayAct, runState, fillRows } from "./app.js";
import { runRow } from "./now.js";

export function show(root, route, signal) {
  const list = el("div");
  const filter = el("input", { type: "search", placeholder: "Filter by prompt, folder, state", "aria-label": "Filter runs", value: route.query.get("q") ?? "", oninput: () => draw() });
  put(root, heading("Runs", mayAct() ? el("a", { class: "button", href: "#/start" }, "Start") : null), el("p", { class: "tools" }, filter), list);
  let runs;
  const draw = () => {
    if (!runs) return;
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = runs.filter((run) => {
      const text = `${run.prompt} ${run.dir} ${run.model ?? ""} ${runState(run)} ${run.id}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    fillRows(list, wanted, (run) => run.id, runRow, empty(runs.length ? "No run fits that." : "There are no runs yet."));
  };
  const load = async () => {
    try {
      runs = (await get("/v1/runs?limit=200", { signal })).runs;
      draw();
    } catch (error) {
      if (!signal.aborted && !runs) put(list, trouble(error));
    }
  };
  let known;
  now.addEventListener("change", () => {
    const seen = now.items.filter((item) => item.kind === "run").map((item) => item.id + item.state).join();
    if (seen !== known) load();
    known = seen;
  }, { signal });
  load();
}
