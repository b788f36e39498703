// Starts a run or a conversation. What the server does not take is told at the field.

import { el, put } from "./dom.js";
import { visible, oneLine } from "./text.js";
import { get, post, onceKey } from "./api.js";
import { me, heading, trouble, mayAct, empty, address } from "./app.js";

const APPROVALS = { plan: "looks and plans", "auto-edit": "edits files", yolo: "does everything" };
/** The box for folders that are not trusted. */
export const TRUST = "Run here although the folder is not trusted";
// What few need: folded until one of them is given.
const SELDOM = ["schema", "max_cost", "max_tokens"];
const NUMBERS = { max_cost: "Give dollars, such as 0.50.", max_tokens: "Give a number, such as 200000." };

// What the next form begins with. Not in its address: that has no room for a long prompt, and anybody can write one.
let handed = {};
/** A link to the form that takes along what it is filled with. */
export const formLink = (label, query, values, props) => el("a", { href: `#/start${query ? `?${query}` : ""}`, ...props,
  // In another tab nothing is known of it, and here nobody opens the form.
  onclick: (event) => { if (!event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey) handed = values(); } }, label);

/** A field with its label, a word of help, and a place for what is wrong with it. */
function field(key, label, control, help) {
  control.id = `start-${key}`;
  control.name = key;
  control.setAttribute("aria-describedby", `start-${key}-help start-${key}-error`);
  return el("div", { class: "field", "data-field": key }, el("label", { for: control.id }, label), control, el("p", { class: "note", id: `start-${key}-help` }, help), el("p", { class: "error", id: `start-${key}-error`, role: "alert" }));
}

export function show(root, route, signal) {
  if (!mayAct()) return put(root, heading("Start"), empty("This token may only watch."));
  const from = handed;
  handed = {};
  const given = (key) => from[key] ?? route.query.get(key) ?? "";
  const chat = given("chat") === "1", resume = given("resume");
  // An address may come from anywhere: it lets a model do no more than read, and starts nothing by itself.
  const approval = given("approval") === "plan" ? "plan" : "default";
  let touched = from.touched ?? ("prompt" in from || !given("prompt"));
  const input = (props) => el("input", { type: "text", autocomplete: "off", spellcheck: "false", ...props });
  const controls = {
    prompt: el("textarea", { rows: "6", required: !chat, value: given("prompt"), placeholder: chat ? "Optional: the first message" : "What is to be done" }),
    dir: input({ list: "dirs", value: given("dir") || me.root || "", placeholder: "/home/you/project" }),
    approval: el("select", null, (me.approvals.length ? me.approvals : ["default"]).map((mode) => el("option", { value: mode, selected: mode === approval }, `${mode}: ${APPROVALS[mode] ?? (chat ? "asks before it acts" : "only reads")}`))),
    model: input({ list: "models", value: given("model"), placeholder: "as set" }),
    trust: el("input", { type: "checkbox" }),
    schema: el("textarea", { rows: "4", spellcheck: "false", value: from.schema ?? "", placeholder: '{"type": "object", \u2026}' }),
    max_cost: input({ inputmode: "decimal", value: from.max_cost ?? "", placeholder: "no limit" }),
    max_tokens: input({ inputmode: "numeric", value: from.max_tokens ?? "", placeholder: "no limit" }),
  };
  const told = el("div");
  const typed = () => ({ ...Object.fromEntries(["prompt", "dir", "model", ...SELDOM].map((key) => [key, controls[key].value])), untrusted: from.untrusted, isBeginning: from.isBeginning, touched });
  // One key for one form: pressed twice it is still one start.
  let key = onceKey();
  const form = el("form", { class: "start", novalidate: true, onsubmit: (event) => { event.preventDefault(); begin(); } },
    resume ? el("p", { class: "note" }, "Goes on with session ", el("code", null, visible(resume).slice(0, 8)), ". ", el("a", { href: `#/start${chat ? "?chat=1" : ""}` }, "Start afresh")) : null,
    field("prompt", chat ? "First message" : "Prompt", controls.prompt, "Ctrl+Enter starts."),
    from.isBeginning ? el("p", { class: "warning" }, "Only the beginning of a long prompt was kept: its end may be missing here.") : null,
    field("dir", "Folder", controls.dir, me.root ? `Inside of ${visible(me.root)}.` : "On the machine of the server."),
    el("div", { class: "pair" }, field("approval", "Approval", controls.approval, "What the model may do without asking."), field("model", "Model", controls.model, "Empty: as Gemini CLI is set.")),
    from.untrusted ? el("p", { class: "warning", "data-untrusted": true }, "The run before failed because its folder is not trusted. Tick the box to run there all the same.") : null,
    field("trust", TRUST, controls.trust, "Without the folder's own settings, MCP servers and hooks."),
    el("details", { open: SELDOM.some((key) => controls[key].value) }, el("summary", null, "Limits and form of the answer"),
      el("div", { class: "pair" }, field("max_cost", "Most it may cost, in $", controls.max_cost, "No model is called any more after that."), field("max_tokens", "Most tokens", controls.max_tokens, "Of all calls together.")),
      chat ? null : field("schema", "Schema of the answer", controls.schema, "A JSON schema; the answer then is data.")),
    told, el("p", { class: "acts" }, el("button", { type: "submit", class: "primary", id: "go", "data-acts": true }, chat ? "Open the chat" : "Start"),
      formLink(chat ? "A single run instead" : "A conversation instead", new URLSearchParams({ ...(chat ? {} : { chat: "1" }), ...(resume ? { resume } : {}) }).toString(), typed)));
  put(root, heading(chat ? "Open a chat" : resume ? "Resume" : "Start a run"), form, el("datalist", { id: "dirs" }), el("datalist", { id: "models" }));
  form.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && touched) begin(); });
  form.addEventListener("input", () => { key = onceKey(); touched = true; });

  const wrong = (name, message) => {
    const place = form.querySelector(`[data-field="${name}"]`);
    if (!place) return false;
    place.closest("details")?.setAttribute("open", "");
    place.querySelector(".error").textContent = message;
    place.classList.add("wrong");
    controls[name].setAttribute("aria-invalid", "true");
    return true;
  };

  /** The field that a message of the server is about: the one whose option stands in it. */
  const fieldOf = (message) => Object.keys(controls).find((name) => new RegExp(`(^|[^\\w-])(--)?${name.replace("_", "[-_]")}\\b`).test(message))
    ?? (/\b(directory|folder)\b/i.test(message) ? "dir" : undefined);

  /** What is asked for; nothing when something is wrong with it. */
  const request = () => {
    const body = {};
    for (const name of ["prompt", "dir", "model", "max_cost", "max_tokens"]) if (controls[name].value.trim()) body[name] = controls[name].value.trim();
    if (controls.prompt.value.trim()) body.prompt = controls.prompt.value;
    body.approval = controls.approval.value;
    if (controls.trust.checked) body.trust = true;
    if (resume) body.resume = resume;
    let good = true;
    const no = (name, message) => { good = false; wrong(name, message); };
    if (!chat && !body.prompt) no("prompt", "Say what is to be done.");
    for (const [name, message] of Object.entries(NUMBERS)) {
      if (body[name] === undefined) continue;
      const number = Number(body[name].replace(",", "."));
      if (!(number > 0) || (name === "max_tokens" && !Number.isInteger(number))) no(name, message);
      else body[name] = number;
    }
    if (!chat && controls.schema.value.trim()) {
      try {
        body.schema = JSON.parse(controls.schema.value);
      } catch (error) {
        no("schema", `This is no JSON: ${error.message}`);
      }
    }
    return good ? body : null;
  };

  const begin = async () => {
    put(told);
    for (const place of form.querySelectorAll(".field.wrong")) {
      place.classList.remove("wrong");
      place.querySelector(".error").textContent = "";
      controls[place.dataset.field].removeAttribute("aria-invalid");
    }
    const body = request();
    if (!body) return form.querySelector("[aria-invalid]")?.focus();
    const go = form.querySelector("#go");
    go.disabled = true;
    try {
      const { prompt, ...options } = body;
      const made = await post(chat ? "/v1/conversations" : "/v1/runs", chat ? options : body, { headers: { "Idempotency-Key": key } });
      if (chat && prompt) await post(`/v1/conversations/${encodeURIComponent(made.id)}/prompt`, { text: prompt });
      location.hash = address(chat ? "conversation" : "run", made.id);
    } catch (error) {
      const all = error.errors?.length ? error.errors : [error];
      const elsewhere = all.filter((one) => !wrong(fieldOf(one.message), visible(one.message + (one.hint ? `\n\u2192 ${one.hint}` : ""))));
      put(told, elsewhere.map(trouble));
      form.querySelector("[aria-invalid]")?.focus();
    } finally {
      go.disabled = false;
    }
  };

  // Where somebody has been, nothing is put under their fingers.
  let visited = false;
  controls.dir.addEventListener("focus", () => { visited = true; }, { once: true });

  const suggest = async () => {
    const [runs, sessions] = await Promise.all([get("/v1/runs?limit=100", { signal }), get("/v1/sessions?limit=100", { signal })]);
    const known = sessions.sessions ?? sessions;
    const options = (values) => [...new Set(values.filter(Boolean))].slice(0, 40).map((value) => el("option", { value }));
    const dirs = [...runs.runs.map((run) => run.dir), ...known.map((session) => session.project)];
    put(document.getElementById("dirs"), options(dirs));
    put(document.getElementById("models"), options([...runs.runs.map((run) => run.model), ...known.flatMap((session) => session.models ?? [])]));
    if (!visited && !controls.dir.value) controls.dir.value = oneLine(dirs.find(Boolean) ?? "", 4000);
  };
  suggest().catch(() => {});
  if (!("ontouchstart" in window)) controls.prompt.focus();
}
