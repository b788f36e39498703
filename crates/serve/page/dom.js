// Elements made by hand. Text goes in as text, never as markup: there is no other way in here.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  add(node, children);
  return node;
}

/** Adds children: nodes, texts, lists of them; nothing for null and false. */
export function add(node, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

/** An element: el("p", {class: "x", onclick: f}, "text", node). */
export function el(name, props, ...children) {
  return fill(document.createElement(name), props, children);
}

/** The same for drawings. */
export function svg(name, props, ...children) {
  return fill(document.createElementNS(SVG, name), props, children);
}

/** Puts these in the place of all that is in an element. What had the focus has it again, if it is still there. */
export function put(node, ...children) {
  const focused = node.contains(document.activeElement) && document.activeElement !== node ? document.activeElement.id : "";
  node.replaceChildren();
  add(node, ...children);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  return node;
}

/** The same, but only when what it is made from has changed: a button that is made anew under a finger is not pressed. */
export function keep(node, from, make) {
  const key = JSON.stringify(from);
  if (node.dataset.from === key) return;
  node.dataset.from = key;
  put(node, make());
}

/** A list that changes: rows of the same thing stay the same element, so that focus and clicks stay with them. */
export function reconcile(list, items, keyOf, make) {
  const known = new Map([...list.children].map((node) => [node.dataset.row, node]));
  let place = list.firstElementChild;
  for (const item of items) {
    const key = keyOf(item), from = JSON.stringify(item);
    let node = known.get(key);
    known.delete(key);
    if (!node || node.dataset.from !== from) {
      const fresh = make(item);
      if (node) {
        node.className = fresh.className;
        node.firstElementChild.replaceChildren(...fresh.firstElementChild.childNodes);
      } else {
        node = fresh;
        node.dataset.row = key;
      }
      node.dataset.from = from;
    }
    if (node === place) place = place.nextElementSibling;
    else list.insertBefore(node, place);
  }
  known.forEach((node) => node.remove());
}

/** Says something to people who listen to the page. */
export function say(text) {
  document.getElementById("said").textContent = text;
}

/** A button that does something. Clicks while it works are not heard. */
export function button(label, act, props) {
  const node = el("button", { type: "button", ...props, onclick: async () => {
    if (node.ariaDisabled === "true") return;
    // What is shown may not be so any more: nobody decides on it.
    if (node.dataset.acts !== undefined && node.closest("[data-stale]")) return say("Cut off from the server: this has to wait.");
    node.ariaDisabled = "true";
    try { await act(node); } finally { node.ariaDisabled = null; }
  } }, label);
  return node;
}

/** Puts a text on the clipboard, also where the page is not served over TLS. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", { class: "unseen", "aria-hidden": "true", value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  say("Copied.");
}

/** A button that copies what a function gives. */
export function copier(label, text) {
  return button(label, async (node) => {
    await copy(text());
    node.textContent = "Copied";
    setTimeout(() => { node.textContent = label; }, 1500);
  }, { class: "quiet" });
}

/** Hands a text to the person as a file. */
export function save(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  const link = el("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A question in the middle of the page; the answer is the value of the button, or empty. */
export function ask(title, body, choices) {
  const dialog = document.getElementById("dialog");
  const buttons = choices.map(([value, label, look]) =>
    el("button", { type: "button", class: look, onclick: () => dialog.close(value) }, label));
  put(dialog, el("h2", { id: "dialog-title" }, title), body, el("p", { class: "acts" }, buttons));
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue), { once: true }));
}
