// Whether everything is there that a run needs, and how to mend what is not.

import { el, put, button } from "./dom.js";
import { visible } from "./text.js";
import { get, LONG } from "./api.js";
import { heading, trouble, badge, empty } from "./app.js";

const WORDS = { good: "ok", doubtful: "note", bad: "bad" };

export function show(root, _route, signal) {
  const body = el("div"), about = el("div");
  put(root, heading("Doctor", button("Look again", () => load())), body, about);
  const load = async () => {
    put(body, empty("Looking\u2026"));
    try {
      const answer = await get("/v1/doctor", { signal, patience: LONG });
      const findings = answer.findings ?? answer;
      const order = { bad: 0, doubtful: 1, good: 2 };
      put(body, el("ul", { class: "findings" }, [...findings].sort((one, other) => order[one.state] - order[other.state]).map((finding) => el("li", { "data-state": finding.state },
        badge(WORDS[finding.state] ?? finding.state), el("b", null, visible(finding.what)),
        el("div", null, el("p", null, visible(finding.detail)), finding.cure ? el("p", { class: "hint" }, visible(finding.cure)) : null)))));
    } catch (error) {
      if (!signal.aborted) put(body, trouble(error));
    }
  };
  const more = async () => {
    const [version, capabilities] = await Promise.all([get("/v1/version", { signal }), get("/v1/capabilities", { signal })]);
    put(about, el("details", null, el("summary", null, "Version and capabilities"), el("pre", { tabindex: "0" }, visible(JSON.stringify(version, null, 2))), el("pre", { tabindex: "0" }, visible(JSON.stringify(capabilities, null, 2)))));
  };
  load();
  more().catch(() => {});
}
