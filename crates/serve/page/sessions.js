// What Gemini CLI keeps: find a session by its folder, its title, or any word in it.

import { el, put } from "./dom.js";
import { oneLine, visible, name, short, figure, clock } from "./text.js";
import { get, LONG } from "./api.js";
import { badge, folder, heading, empty, trouble } from "./app.js";

/** A snippet with what was found in it marked. The places are counted in bytes. */
function marked(snippet) {
  const bytes = new TextEncoder().encode(snippet.text), decoder = new TextDecoder();
  const piece = (from, to) => visible(decoder.decode(bytes.subarray(from, to)));
  const parts = [];
  let at = 0;
  for (const { start, end } of snippet.marks ?? []) {
    parts.push(piece(at, start), el("mark", null, piece(start, end)));
    at = end;
  }
  parts.push(piece(at, bytes.length));
  return el("bdi", null, parts);
}

const address = (id, query) => `#/session/${encodeURIComponent(id)}${query ? `?q=${encodeURIComponent(query)}` : ""}`;

function row(session, snippets, query) {
  return el("li", null, el("a", { href: address(session.id, query), "data-id": session.id },
    el("bdi", { class: "title" }, oneLine(session.title || "(no title)", 140)),
    badge(session.state),
    el("span", { class: "meta" }, folder(session.project), el("span", null, `${figure(session.messages)} messages`),
      session.usage?.total ? el("span", { title: `${figure(session.usage.total)} tokens` }, `${short(session.usage.total)} tokens`) : null,
      el("time", { datetime: session.updated }, clock(session.updated)), el("code", null, visible(session.id).slice(0, 8))),
    snippets?.length ? el("ul", { class: "snippets" }, snippets.map((snippet) => el("li", null, el("span", { class: "kind" }, visible(snippet.place)), " ", marked(snippet)))) : null));
}

export function show(root, route, signal) {
  const list = el("div"), told = el("p", { class: "note", role: "status" });
  const words = el("input", { type: "search", id: "search", placeholder: "Search in all that was said and done", "aria-label": "Search sessions", value: route.query.get("q") ?? "" });
  const filter = el("input", { type: "search", placeholder: "Filter this list", "aria-label": "Filter the list", oninput: () => draw() });
  const dirs = el("select", { "aria-label": "Folder", onchange: () => draw() }, el("option", { value: "" }, "All folders"));
  put(root, heading("Sessions"),
    el("form", { class: "tools", role: "search", onsubmit: (event) => { event.preventDefault(); location.hash = `#/sessions${words.value.trim() ? `?q=${encodeURIComponent(words.value.trim())}` : ""}`; } },
      words, el("button", { type: "submit", class: "primary" }, "Search"), filter, dirs), told, list);
  const query = route.query.get("q") ?? "";
  let all = [];

  const draw = () => {
    const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = all.filter(({ session }) => {
      if (dirs.value && session.project !== dirs.value) return false;
      const text = `${session.title ?? ""} ${session.project ?? ""} ${session.id} ${(session.models ?? []).join(" ")} ${session.state}`.toLowerCase();
      return wanted.every((word) => text.includes(word));
    });
    put(list, shown.length ? el("ul", { class: "rows sessions" }, shown.map(({ session, snippets }) => row(session, snippets, query)))
      : empty(all.length ? "No session fits that." : query ? "Nothing was found." : "Gemini CLI keeps no sessions here."));
  };

  const load = async () => {
    if (query) {
      const found = await get(`/v1/sessions/search?${new URLSearchParams({ q: query, limit: "50" })}`, { signal, patience: LONG });
      all = found.hits ?? [];
      told.textContent = `${figure(found.total ?? all.length)} ${found.total === 1 ? "session has" : "sessions have"} \u201c${visible(query)}\u201d. `;
      told.append(el("a", { href: "#/sessions" }, "All sessions"));
    } else {
      const answer = await get("/v1/sessions?limit=500", { signal, patience: LONG });
      all = (answer.sessions ?? answer).map((session) => ({ session }));
    }
    const known = [...new Set(all.map(({ session }) => session.project).filter(Boolean))].sort();
    dirs.append(...known.map((dir) => el("option", { value: dir }, visible(dir))));
    draw();
  };
  load().catch((error) => { if (!signal.aborted) put(list, trouble(error)); });
}
