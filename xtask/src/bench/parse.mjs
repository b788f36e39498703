// The baseline of `cargo xtask bench parse`: what a host in Node does with a stream, as fast as readline and JSON.parse
// allow (the line event, not the slower async iterator). Prints seconds and counts; lengths are taken after the clock
// stopped, because UTF-8 lengths cost Node extra.
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";

const start = process.hrtime.bigint();
const events = [];
const counts = { events: 0, init: 0, message: 0, tool_use: 0, tool_result: 0, error: 0, result: 0, malformed: 0 };
const lines = createInterface({ input: createReadStream(process.argv[2], { highWaterMark: 1 << 20 }), crlfDelay: Infinity });
let seq = 0;

lines.on("line", (line) => {
  let event;
  try {
    event = JSON.parse(line);
  } catch {
    counts.malformed++;
    return;
  }
  counts.events++;
  counts[event.type]++;
  switch (event.type) {
    case "init":
      events.push({ seq: seq++, at: event.timestamp, type: "started", session_id: event.session_id, model: event.model });
      break;
    case "message":
      if (event.role === "assistant") events.push({ seq: seq++, at: event.timestamp, type: "text", delta: event.content });
      else events.push({ seq: seq++, at: event.timestamp, type: "prompt", text: event.content });
      break;
    case "tool_use":
      events.push({ seq: seq++, at: event.timestamp, type: "tool_call", id: event.tool_id, name: event.tool_name, input: event.parameters });
      break;
    case "tool_result":
      events.push({ seq: seq++, at: event.timestamp, type: "tool_result", id: event.tool_id, ok: event.status === "success", output: event.output });
      break;
    case "error":
      events.push({ seq: seq++, at: event.timestamp, type: event.severity, message: event.message });
      break;
    case "result":
      events.push({ seq: seq++, at: event.timestamp, type: "finished", status: event.status, stats: event.stats });
      break;
  }
});

lines.on("close", () => {
  const seconds = Number(process.hrtime.bigint() - start) / 1e9;
  let text = 0;
  let output = 0;
  for (const event of events) {
    if (event.type === "text") text += Buffer.byteLength(event.delta);
    if (event.type === "tool_result") output += Buffer.byteLength(event.output ?? "");
  }
  const numbers = [counts.events, counts.init, counts.message, counts.tool_use, counts.tool_result, counts.error, counts.result, counts.malformed, text, output];
  console.log(seconds, numbers.join(" "));
});
