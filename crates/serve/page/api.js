// The API: answers, problems, and streams of events that come back by themselves.

import { link } from "./link.js";

/** What the API said instead of an answer. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `The server answered ${status}.`);
    this.status = status;
    this.kind = body.kind;
    this.title = body.title;
    this.hint = body.hint;
    /** All that is wrong, where that is more than one thing: each with a message and a hint. */
    this.errors = body.errors ?? [];
  }
}

// What is not said by then is not waited for.
const PATIENCE = 60_000;
/** What reads much, or waits for an agent, may take longer. */
export const LONG = 300_000;

async function ask(method, path, { body, headers, signal, as = "json", patience = PATIENCE } = {}) {
  const limit = new AbortController();
  let late = false;
  const timer = setTimeout(() => { late = true; limit.abort(); }, patience);
  const left = () => limit.abort();
  if (signal?.aborted) left();
  signal?.addEventListener("abort", left, { once: true });
  let answer;
  try {
    answer = await fetch(path, {
      method, signal: limit.signal, cache: "no-store",
      headers: { Accept: as === "json" ? "application/json" : "*/*", ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    if (late) throw new Problem(0, unanswered(method, patience));
    throw new Problem(0, { title: "No answer", detail: "The server does not answer.", hint: "Is `alhena serve` still running?" });
  } finally {
    clearTimeout(timer);
  }
  if (answer.status === 401) link.denied();
  if (!answer.ok) throw new Problem(answer.status, await problem(answer));
  if (answer.status === 204) return null;
  const text = await answer.text();
  return as === "text" ? text : text ? JSON.parse(text) : null;
}

/** Why there is no answer yet: a browser has six connections for all windows, and lets what is asked beyond them wait without a word. */
const unanswered = (method, patience) => ({
  title: "No answer",
  detail: `The server has not answered in ${patience / 1000} s.`,
  hint: `Other windows of this page may hold all connections that the browser has: close some.${method === "GET" ? "" : " It may be done all the same: look before you ask again."}`,
});

async function problem(answer) {
  try {
    return await answer.json();
  } catch {
    return { title: answer.statusText };
  }
}

export const get = (path, options) => ask("GET", path, options);
export const post = (path, body = {}, options) => ask("POST", path, { body, ...options });
export const patch = (path, body) => ask("PATCH", path, { body });
export const remove = (path) => ask("DELETE", path);

/** A key that makes a start that is sent twice one start. */
export function onceKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A path with what is not safe in one. */
export const path = (parts, ...values) => parts.map((part, at) => part + (at < values.length ? encodeURIComponent(values[at]) : "")).join("");

/** Everything of a text with one JSON value per line, or of a list, or of an object that has one. */
export function listed(text, member) {
  const start = text.trimStart();
  if (start.startsWith("[")) return JSON.parse(start);
  try {
    const whole = JSON.parse(start);
    return Array.isArray(whole[member]) ? whole[member] : [whole];
  } catch {
    return start.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line));
  }
}

// The server says something at least each 15 s. A connection that is dead for longer is none.
export const SILENCE = 45_000;
const FIRST_WAIT = 250;
const LONGEST_WAIT = 10_000;

/**
 * Follows a stream of events until `close`. `onevent(data)` says with "end" that it was the last. `onstate` hears "live", "cut" (with
 * when the next attempt is), "ended", "gone" (with the problem) and "denied"; `onheard` that there is somebody. A page that nobody
 * sees holds no connection: a browser has six for all of them.
 */
export function follow(address, { onevent, onstate, onheard = () => {} }) {
  let closed = false, last, wait = FIRST_WAIT, timer, request, silence;
  const again = () => {
    clearTimeout(timer);
    timer = undefined;
    if (!closed && !document.hidden) connect();
  };
  const broken = () => {
    if (closed) return;
    const delay = wait * (0.75 + Math.random() / 2);
    wait = Math.min(wait * 2, LONGEST_WAIT);
    onstate("cut", Date.now() + delay);
    timer = setTimeout(again, delay);
  };
  const heard = (mine) => {
    clearTimeout(silence);
    silence = setTimeout(() => mine.abort(), SILENCE);
  };
  // A fault of ours is no fault of the line.
  const told = (data) => {
    try {
      return onevent(JSON.parse(data));
    } catch (error) {
      reportError(error);
      return undefined;
    }
  };
  async function connect() {
    request?.abort();
    const mine = request = new AbortController();
    try {
      heard(mine);
      const headers = { Accept: "text/event-stream" };
      if (last !== undefined) headers["Last-Event-ID"] = last;
      const answer = await fetch(address, { headers, signal: mine.signal, cache: "no-store" });
      if (answer.status === 401) return finish("denied");
      if ([403, 404, 410].includes(answer.status)) return finish("gone", new Problem(answer.status, await problem(answer)));
      if (!answer.ok) throw new Error(String(answer.status));
      // Everything that will ever come was there before.
      if (answer.status === 204) return finish("ended");
      onstate("live");
      for await (const message of messages(answer.body, () => { heard(mine); if (request === mine) onheard(); })) {
        if (request !== mine) return;
        wait = FIRST_WAIT;
        if (message.id !== undefined) last = message.id;
        if (message.data !== "" && told(message.data) === "end") return finish("ended");
      }
      if (request === mine) broken();
    } catch {
      if (request === mine && !document.hidden) broken();
    } finally {
      if (request === mine) clearTimeout(silence);
    }
  }
  function finish(state, more) {
    const told = !closed;
    close();
    if (told) onstate(state, more);
  }
  function seen() {
    if (closed) return;
    if (document.hidden) {
      clearTimeout(timer);
      const mine = request;
      request = undefined;
      mine?.abort();
      onstate("cut", 0);
    } else {
      again();
    }
  }
  // When one stream is back, the others need not wait.
  const back = () => { if (link.live && timer !== undefined) again(); };
  function close() {
    closed = true;
    link.removeEventListener("change", back);
    clearTimeout(timer);
    clearTimeout(silence);
    document.removeEventListener("visibilitychange", seen);
    const mine = request;
    request = undefined;
    mine?.abort();
  }
  document.addEventListener("visibilitychange", seen);
  link.addEventListener("change", back);
  again();
  return { close, again };
}

/** The messages of a stream of events. */
async function* messages(body, onbytes) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let parts = [], message = { data: [] };
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    onbytes();
    // A long line comes in many pieces: they are put together once.
    const lines = value.split("\n");
    for (let at = 0; at < lines.length; at++) {
      parts.push(lines[at]);
      if (at === lines.length - 1) break;
      const line = parts.join("").replace(/\r$/, "");
      parts = [];
      if (line === "") {
        if (message.data.length || message.id !== undefined) yield { id: message.id, data: message.data.join("\n") };
        message = { data: [] };
      } else if (line.startsWith("data:")) message.data.push(line.slice(line[5] === " " ? 6 : 5));
      else if (line.startsWith("id:")) message.id = line.slice(3).trim();
    }
  }
}
