// One stream for all windows of a browser. It has six connections for all of them, and a window needs others besides.

import { follow, SILENCE } from "./api.js";

// Whoever leads says within that time that it was cut off; a leader that does not is none.
const UNHEARD = SILENCE + 5000;

/**
 * Follows a stream as `follow` does, but of the windows that are seen only one has it: it leads, and tells the others what it hears.
 * When it is gone or hidden another one leads. Where a browser has no locks (a page that is not from this machine and without TLS)
 * each window has a stream of its own.
 */
export function share(address, { onevent, onstate }) {
  if (!navigator.locks || !window.BroadcastChannel) return follow(address, { onevent, onstate });
  const channel = new BroadcastChannel(address);
  let stream, release, waiting, unheard, over = false, state, next, event;

  const heard = () => {
    clearTimeout(unheard);
    unheard = setTimeout(() => {
      onstate("cut", 0);
      if (!stream) join({ steal: true });
    }, UNHEARD);
  };
  const took = (message) => {
    heard();
    if (message.event !== undefined) onevent(message.event);
    if (message.state !== undefined) onstate(message.state, message.next);
  };
  /** What the stream says, for this window and for the others. */
  const tell = (message) => {
    channel.postMessage(message);
    took(message);
  };
  channel.onmessage = ({ data }) => {
    if (over || document.hidden) return;
    if (!stream) {
      if (!data.hello && !data.again) took(data);
    } else if (data.hello) {
      if (event !== undefined) channel.postMessage({ event });
      if (state !== undefined) channel.postMessage({ state, next });
    } else if (data.again) stream.again();
  };

  /** Has the stream until it is released. */
  const lead = () => over || document.hidden ? undefined : new Promise((resolve) => {
    release = resolve;
    state = event = undefined;
    stream = follow(address, {
      onheard: () => tell({}),
      onevent: (data) => tell({ event: event = data }),
      onstate: (how, more) => {
        if (how === "live" || how === "cut") return tell({ state: state = how, next: next = more });
        // The others hear the reason when they ask for themselves.
        over = true;
        leave();
        return onstate(how, more);
      },
    });
  });
  function leave() {
    clearTimeout(unheard);
    waiting?.abort();
    stream?.close();
    stream = undefined;
    release?.();
  }
  async function join(how) {
    waiting?.abort();
    const mine = waiting = new AbortController();
    heard();
    channel.postMessage({ hello: true });
    try {
      await navigator.locks.request(address, how ?? { signal: mine.signal }, lead);
    } catch {
      // Somebody who heard nothing took the lead, or this window does not want it any more.
      if (waiting !== mine || mine.signal.aborted) return;
      leave();
      join();
    }
  }
  document.addEventListener("visibilitychange", () => {
    if (over) return;
    if (document.hidden) {
      leave();
      onstate("cut", 0);
    } else join();
  });
  if (!document.hidden) join();
  return { again: () => (stream ? stream.again() : channel.postMessage({ again: true })) };
}
