// The official SDK's client, told what to do by lines on stdin: `node client.mjs COMMAND ARGS...` starts that agent.
//
// In:  {"call": "newSession", "params": {...}, "tag": 1}   a method of the connection
//      {"request": "a/method", "params": {...}, "tag": 2}  any other method
//      {"answer": 1, "result": {...}}                      to a question
// Out: {"tag": 1, "result": ...} or {"tag": 1, "error": {...}}, {"ask": 1, "params": ...}, {"update": ...}, {"closed": code}
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";
import { ClientSideConnection, ndJsonStream } from "@agentclientprotocol/sdk";

const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);
const [command, ...args] = process.argv.slice(2);
const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
agent.on("exit", (code, signal) => say({ closed: code ?? signal }));
agent.stdin.on("error", () => {});

const questions = new Map();
const client = {
  sessionUpdate: async (params) => say({ update: params }),
  requestPermission: (params) =>
    new Promise((resolve) => {
      const ask = questions.size + 1;
      questions.set(ask, resolve);
      say({ ask, params });
    }),
};
const connection = new ClientSideConnection(
  () => client,
  ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)),
);

createInterface({ input: process.stdin }).on("line", async (line) => {
  const { call, request, answer, params, result, tag } = JSON.parse(line);
  if (answer !== undefined) return questions.get(answer)(result);
  try {
    const done = request ? await connection.extMethod(request, params) : await connection[call](params);
    say({ tag, result: done ?? null });
  } catch (error) {
    say({ tag, error: { code: error.code, message: error.message ?? String(error), data: error.data } });
  }
}).on("close", () => agent.stdin.end());
