// What an agent said and did, made of events: those of a run, of a conversation and of a stored session are the same.

import { el, add, put } from "./dom.js";
import { visible, oneLine, cut, name, long, moment, short, figure, money, span } from "./text.js";
import { blocks, settled } from "./markdown.js";
import { diffView, tally } from "./diff.js";

// So much of one answer is set as text; what is longer is shown in parts.
const PROSE = 16_000;

/** The answer of a model while it comes. */
class Prose {
  constructor() {
    this.node = el("div", { class: "prose" });
    this.tail = el("div", { class: "tail" });
    this.node.append(this.tail);
    this.whole = "";
    this.done = 0;
    this.dirty = false;
  }

  push(delta) {
    this.whole += delta;
    this.dirty = true;
  }

  /** Draws what came since the last time; what stands for good is not drawn again. */
  draw() {
    if (!this.dirty) return;
    this.dirty = false;
    if (!this.rest) {
      const text = cut(this.whole, PROSE);
      const ready = this.done + settled(text.slice(this.done));
      if (ready > this.done) {
        this.tail.before(...blocks(text.slice(this.done, ready)));
        this.done = ready;
      }
      put(this.tail, blocks(text.slice(this.done)));
    }
    if (this.whole.length <= PROSE) return;
    if (!this.rest) this.node.append(this.rest = el("div", { class: "rest" }));
    // While it comes only its size changes.
    put(this.rest, el("p", { class: "note" }, `\u2026 ${short(this.whole.length - PROSE)} more characters`));
  }

  /** It is complete. */
  end() {
    this.draw();
    if (this.rest) put(this.rest, long(this.whole.slice(cut(this.whole, PROSE).length), { first: 0, lines: 0, file: "answer.txt" }));
  }
}

/** What a call is about, in a few words. */
function about(call) {
  const input = call.input ?? {};
  for (const key of ["command", "file_path", "path", "absolute_path", "dir_path", "pattern", "query", "url", "prompt", "description"]) {
    if (typeof input[key] === "string" && input[key]) return oneLine(input[key], 120);
  }
  const text = JSON.stringify(input);
  return text === "{}" ? "" : oneLine(text, 120);
}

/** A card for a tool: what it is asked, what it gave, what it changed. */
class Tool {
  constructor(call) {
    this.call = call;
    this.state = el("span", { class: "state" }, "running");
    this.output = el("div", { class: "output" });
    this.changes = el("div");
    this.node = el("details", { class: "tool", "data-tool": call.name, "data-state": "running", open: call.class === "command" },
      el("summary", null, el("b", null, visible(call.claude_name || call.name || "tool")), " ", el("bdi", { class: "about" }, about(call)), " ", this.state),
      this.input(), this.output);
  }

  input() {
    const { input } = this.call;
    if (input === undefined || input === null) return null;
    if (typeof input.command === "string") return el("div", { class: "input" }, long(input.command, { label: "Command", file: "command.txt" }));
    const rows = Object.entries(input).map(([key, value]) => [
      el("dt", null, visible(key)),
      el("dd", null, long(typeof value === "string" ? value : JSON.stringify(value, null, 2), { first: 600, lines: 8, file: `${key}.txt`, label: visible(key) })),
    ]);
    return rows.length ? el("dl", { class: "input" }, rows) : null;
  }

  result(event) {
    const failed = !event.ok;
    const word = event.cancelled ? "cancelled" : event.exit_code ? `exit ${event.exit_code}` : failed ? "failed" : "done";
    this.node.dataset.state = event.cancelled ? "cancelled" : failed ? "failed" : "done";
    this.state.textContent = word;
    put(this.output);
    if (event.error) add(this.output, el("p", { class: "error" }, visible(event.error.message)));
    if (event.output && event.output !== event.error?.message) add(this.output, long(event.output, { first: 3000, lines: 20, file: "output.txt", label: "Output" }));
    // What went well and changed nothing is for those who want to know.
    if (!failed) this.node.open = false;
  }

  /** It does not run: somebody is asked first. */
  ask(permission) {
    this.permission = permission;
    this.node.dataset.state = "waiting";
    this.state.textContent = "waits for an answer";
  }

  answered(decision) {
    if (this.node.dataset.state !== "waiting") return;
    const may = decision === "allow" || decision === "always";
    this.node.dataset.state = may ? "running" : "cancelled";
    this.state.textContent = may ? "running" : "not allowed";
  }

  /** The run is over, and it never said how this ended. */
  abandon() {
    if (!["running", "waiting"].includes(this.node.dataset.state)) return;
    this.node.dataset.state = "cancelled";
    this.state.textContent = "no result";
  }
}

/** A file that changed, with its diff. */
function change(event, open) {
  return el("details", { class: "change", open, "data-path": event.path },
    el("summary", null, el("span", { class: "state" }, event.change), " ", name(event.path, { class: "path" }), " ",
      event.diff ? tally(event.diff) : null, event.verified === false ? el("em", null, "not on the disk") : null),
    event.diff ? diffView(event.diff, `Changes of ${oneLine(event.path)}`) : el("p", { class: "note" }, "Its contents are not known."));
}

/** The transcript: push events, and it grows. */
export class Transcript {
  constructor() {
    this.node = el("div", { class: "transcript", role: "log", "aria-live": "off", "aria-label": "Transcript" });
    this.tools = new Map();
    this.asked = new Map();
    this.prose = null;
    this.frame = 0;
  }

  push(event) {
    if (event.type !== "text" && event.type !== "usage") this.endProse();
    this[`on_${event.type}`]?.(event);
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  /** Draws at once what waits for the next frame. */
  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const root = document.scrollingElement;
    const following = root.scrollTop + root.clientHeight >= root.scrollHeight - 120;
    this.waiting?.forEach((node) => this.node.append(node));
    this.waiting = null;
    this.prose?.draw();
    if (following && this.follows) root.scrollTop = root.scrollHeight;
  }

  /** Whether the last event was there. */
  isOver = false;
  /** The warnings that it has. */
  warned = new Set();

  /** Whether the end stays in sight as it grows, for those who look at it. */
  follows = false;

  append(node) {
    (this.waiting ??= []).push(node);
    return node;
  }

  endProse() {
    this.prose?.end();
    this.prose = null;
  }

  on_prompt(event) {
    this.append(el("article", { class: "prompt", "aria-label": "Prompt" }, long(event.text, { first: 2000, lines: 20, file: "prompt.txt" }), moment(event.at)));
  }

  on_text(event) {
    if (!this.prose) {
      this.prose = new Prose();
      this.append(el("article", { class: "answer", "aria-label": "Answer" }, this.prose.node));
    }
    this.prose.push(event.delta);
  }

  on_thinking(event) {
    this.append(el("details", { class: "thought" },
      el("summary", null, "Thought: ", el("bdi", null, oneLine(event.subject || event.text, 120))),
      long(event.text, { file: "thought.txt" })));
  }

  on_tool_call(event) {
    const tool = new Tool(event);
    this.tools.set(event.id, tool);
    this.append(tool.node);
  }

  on_tool_result(event) {
    let tool = this.tools.get(event.id);
    if (!tool) {
      this.on_tool_call({ ...event, class: "unknown" });
      tool = this.tools.get(event.id);
    }
    tool.result(event);
  }

  on_file_change(event) {
    const node = change(event, true);
    const tool = this.tools.get(event.call_id);
    if (tool) tool.node.after(node);
    // A card that is not drawn yet has nothing to stand behind.
    if (!node.parentNode) this.append(node);
  }

  on_warning(event) {
    this.warned.add(event.message);
    this.append(el("p", { class: "warning" }, visible(cut(event.message, 4000))));
  }

  on_error(event) {
    this.append(el("p", { class: "error" }, visible(cut(event.message, 4000))));
  }

  on_malformed(event) {
    this.append(el("p", { class: "note" }, `A line of ${figure(event.bytes)} bytes was no event: `, el("code", null, oneLine(event.sample, 200))));
  }

  on_unknown(event) {
    this.append(el("details", { class: "tool" }, el("summary", null, "An event of an unknown kind"), long(JSON.stringify(event.raw, null, 2))));
  }

  on_permission(event) {
    const { id, title, tool } = event.permission;
    this.asked.set(id, title || tool);
    [...this.tools.values()].findLast((one) => one.call.name === tool && one.node.dataset.state === "running")?.ask(id);
  }

  on_permission_resolved(event) {
    const about = this.asked.get(event.id);
    [...this.tools.values()].find((one) => one.permission === event.id)?.answered(event.decision);
    const word = { allow: "Allowed once", always: "Allowed always", reject: "Rejected", withdrawn: "Not asked any more" }[event.decision] ?? event.decision ?? "";
    this.append(el("p", { class: "note decided", "data-decision": event.decision }, visible(word), about ? [": ", name(about)] : null, event.reason ? [" (", name(event.reason), ")"] : null));
  }

  on_closed(event) {
    this.close();
    this.append(el("p", { class: "note" }, "The conversation was closed", event.reason ? [": ", name(event.reason)] : null, "."));
  }

  on_turn_finished(event) {
    this.close();
    const outcome = event.outcome ?? {};
    if (outcome.failure) this.append(failure(outcome.failure));
    this.append(el("p", { class: "note turn" }, facts(outcome)));
  }

  on_finished(event) {
    this.isOver = true;
    this.on_turn_finished(event);
  }

  /** Nothing more comes: what is open stays without an end. */
  close() {
    this.endProse();
    this.tools.forEach((tool) => tool.abandon());
  }
}

/** Figures of an outcome, in one line. */
export function facts(outcome) {
  const used = outcome.usage ?? {};
  const cost = outcome.cost_usd ?? used.cost_usd;
  return [
    outcome.status, outcome.duration_ms ? span(outcome.duration_ms) : null,
    outcome.tool_calls ? `${outcome.tool_calls} tool ${outcome.tool_calls === 1 ? "call" : "calls"}` : null,
    used.total ? `${figure(used.total)} tokens` : null,
    cost !== undefined ? `${outcome.cost_is_lower_bound ? "at least " : ""}${money(cost)}` : null,
  ].filter(Boolean).join(" \u00b7 ");
}

/** Why something failed, and what to do. */
export function failure(what) {
  return el("div", { class: "failure", role: "group", "aria-label": "Why it failed" },
    el("p", null, el("b", null, visible(what.kind).replaceAll("_", " ")), " ", el("bdi", null, visible(cut(what.message ?? "", 2000)))),
    // How to go on after a stop is told for programs; the page has a button.
    what.hint && what.kind !== "cancelled" ? el("p", { class: "hint" }, visible(what.hint)) : null,
    what.errors?.length ? el("ul", null, what.errors.slice(0, 50).map((error) => el("li", null, visible(cut(error, 500))))) : null,
    what.stderr ? el("details", null, el("summary", null, "The last lines of its standard error"), long(what.stderr)) : null);
}
