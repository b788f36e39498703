// Whether the page hears the server. What is shown is live only while it does; the page says so when it does not.

import { el, put, button } from "./dom.js";
import { clock } from "./text.js";

class Link extends EventTarget {
  state = "connecting";
  #since;
  #next = 0;
  #ticking;
  /** What tries again at once. */
  retry = () => {};

  /** The stream that the page always has says how it is. */
  is(state, next) {
    if (this.state === "denied") return;
    if (state === "cut" && this.state !== "cut") this.#since = new Date();
    this.#next = next ?? 0;
    const changed = this.state !== state;
    this.state = state;
    this.#show();
    if (changed) this.dispatchEvent(new Event("change"));
  }

  denied() {
    if (this.state === "denied") return;
    this.is("denied");
  }

  get live() {
    return this.state === "live";
  }

  #show() {
    const root = document.documentElement, box = document.getElementById("cut");
    root.dataset.link = this.state;
    document.getElementById("link-text").textContent = { connecting: "Connecting", live: "Live", cut: "Cut off", denied: "Not let in" }[this.state];
    clearInterval(this.#ticking);
    box.hidden = this.state === "live" || this.state === "connecting";
    document.body.toggleAttribute("data-stale", !box.hidden);
    if (this.state === "cut") {
      const left = el("span", { "aria-hidden": "true" });
      put(box, el("strong", null, "Cut off from the server"), ` since ${clock(this.#since)}. What you see is as it was then. `, left,
        button("Try now", () => this.retry(), { class: "quiet" }));
      const tell = () => {
        const seconds = Math.ceil((this.#next - Date.now()) / 1000);
        left.textContent = seconds > 0 ? `Trying again in ${seconds} s. ` : "Trying again. ";
      };
      tell();
      this.#ticking = setInterval(tell, 1000);
    }
    if (this.state === "denied") {
      put(box, el("strong", null, "The token of this page is not valid any more."), " Open ", el("code", null, `${location.origin}/?token=`), " with the token that ", el("code", null, "alhena serve token"), " prints.");
    }
  }
}

export const link = new Link();
