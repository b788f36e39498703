// One session, to read and to take along.

import { el, put } from "./dom.js";
import { oneLine, visible, figure, moment, short } from "./text.js";
import { get, path, LONG } from "./api.js";
import { heading, facts, folder, badge, trouble, mayAct } from "./app.js";
import { Transcript } from "./transcript.js";

export function show(root, route, signal) {
  const id = route.id, head = el("div"), told = el("div");
  const transcript = new Transcript();
  put(root, heading("Session"), head, told, transcript.node);
  const exported = (as, label, end) => el("a", { class: "button", href: path`/v1/sessions/${id}/export?as=` + as, download: `session-${id.slice(0, 8)}.${end}` }, label);

  const about = (session) => {
    const more = { resume: id, dir: session.project ?? "" };
    put(root.querySelector(".heading"), el("h1", { id: "title", tabindex: "-1" }, el("bdi", null, oneLine(session.title || "Session", 200))), badge(session.state),
      mayAct() ? [el("a", { class: "button", href: `#/start?${new URLSearchParams(more)}` }, "Resume"), el("a", { class: "button", href: `#/start?${new URLSearchParams({ chat: "1", ...more })}` }, "Chat")] : null);
    put(head, facts([
      ["Folder", folder(session.project)], ["Models", (session.models ?? []).map(visible).join(", ")], ["Started", moment(session.started)], ["Changed", moment(session.updated)],
      ["Messages", figure(session.messages)], ["Tokens", session.usage?.total ? el("span", { title: figure(session.usage.total) }, short(session.usage.total)) : null], ["Id", el("code", null, visible(id))],
    ]), el("p", { class: "tools" }, "Export: ", exported("markdown", "Markdown", "md"), exported("html", "HTML", "html"), exported("json", "JSON", "json")));
  };

  const read = async () => {
    const { session, events } = await get(path`/v1/sessions/${id}?as=events`, { signal, patience: LONG });
    about(session);
    const query = route.query.get("q");
    // In portions, so that the page answers meanwhile.
    for (let at = 0; at < events.length && !signal.aborted; at += 200) {
      events.slice(at, at + 200).forEach((event) => transcript.push(event));
      transcript.draw();
      await new Promise((resolve) => setTimeout(resolve));
    }
    transcript.close();
    if (query) highlight(transcript.node, query);
  };
  read().catch((error) => { if (!signal.aborted) put(told, trouble(error)); });
}

/** Marks the words that were searched for, opens what hides the first one, and goes there. */
function highlight(node, query) {
  const words = query.toLowerCase().split(/[\s"']+/).filter((word) => word.length > 1);
  if (!words.length) return;
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode() && texts.length < 20_000) texts.push(walker.currentNode);
  let count = 0, first;
  for (const text of texts) {
    const lower = text.data.toLowerCase();
    // Where the small letters are not as many, the places differ.
    if (lower.length !== text.data.length) continue;
    const places = words.flatMap((word) => {
      const found = [];
      for (let at = lower.indexOf(word); at >= 0 && found.length < 50; at = lower.indexOf(word, at + word.length)) found.push([at, at + word.length]);
      return found;
    }).sort((one, other) => other[0] - one[0]);
    let last = Infinity;
    for (const [start, end] of places) {
      if (end > last || count >= 500) continue;
      last = start;
      const middle = text.splitText(start);
      middle.splitText(end - start);
      const mark = el("mark");
      middle.replaceWith(mark);
      mark.append(middle);
      count++;
    }
  }
  first = node.querySelector("mark");
  for (let up = first?.closest("details"); up; up = up.parentElement.closest("details")) up.open = true;
  first?.scrollIntoView({ block: "center" });
}
