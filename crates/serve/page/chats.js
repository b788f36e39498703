// The conversations.

import { el, put } from "./dom.js";
import { oneLine } from "./text.js";
import { get } from "./api.js";
import { now, badge, address, folder, ageing, spent, heading, empty, trouble, mayAct, fillRows } from "./app.js";

export function show(root, _route, signal) {
  const list = el("div");
  put(root, heading("Chats", mayAct() ? el("a", { class: "button", href: "#/start?chat=1" }, "New chat") : null), list);
  const load = async () => {
    try {
      const answer = await get("/v1/conversations", { signal });
      const all = answer.conversations ?? answer;
      fillRows(list, all, (chat) => chat.id, row, empty("There are no conversations."));
    } catch (error) {
      if (!signal.aborted) put(list, trouble(error));
    }
  };
  let known;
  now.addEventListener("change", () => {
    const seen = now.items.filter((item) => item.kind === "conversation").map((item) => item.id + item.state).join();
    if (seen !== known) load();
    known = seen;
  }, { signal });
  load();
}

function row(chat) {
  const asked = chat.permissions?.[0]?.title;
  return el("li", { class: chat.state === "waiting" ? "waits" : null }, el("a", { href: address("conversation", chat.id), "data-id": chat.id },
    el("span", { class: "kind" }, "Chat"),
    el("bdi", { class: "title" }, oneLine(chat.title || chat.id, 140)),
    badge(chat.state),
    el("span", { class: "doing" }, el("bdi", null, asked ? oneLine(asked, 140) : `${chat.turns ?? 0} ${chat.turns === 1 ? "turn" : "turns"}`)),
    el("span", { class: "meta" }, folder(chat.dir), el("span", null, spent(chat)), ageing(chat.created_at))));
}
