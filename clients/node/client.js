// memd's client for Node: `import { Client } from "memd"; const client = new Client(); await client.recall("tabs")`.
// A call ends by its deadline; many calls may run at once; only a pending call keeps the process alive.
// requests.js lists the methods.
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { MemdError } from "./errors.js";
import { DATED, FAST, METHODS } from "./requests.js";
import { append } from "./spool.js";
import { Connection } from "./zmtp.js";

export { MemdError } from "./errors.js";

const BODY_LIMIT = 4 * 1024 * 1024;
const FAST_MS = 2000, SLOW_MS = 10000;
const IN_FOLDER = ["recall", "profile", "context", "fading", "timeline"]; // requests about the folder of the process
const NO = ["", "0", "false", "no", "off"];

/** Returns the folders of an environment, by the rules of protocol/places.py. */
export function places(env = process.env) {
  const home = env.HOME || os.homedir();
  if (env.MEMD_HOME) {
    const base = path.resolve(env.MEMD_HOME);
    return { state: path.join(base, "state"), config: path.join(base, "config"), run: path.join(base, "run") };
  }
  return {
    state: path.join(env.XDG_STATE_HOME || path.join(home, ".local/state"), "memd"),
    config: path.join(env.XDG_CONFIG_HOME || path.join(home, ".config"), "memd"),
    run: env.XDG_RUNTIME_DIR ? path.join(env.XDG_RUNTIME_DIR, "memd") : "",
  };
}

/** Returns the path that the file `socket` names if it exists, else the usual one. Throws MemdError. */
function socketPath(here) {
  let socket = here.run && path.join(here.run, "memd.sock");
  try {
    const named = fs.readFileSync(path.join(here.state, "socket"), "utf8").trim();
    if (path.isAbsolute(named) && fs.existsSync(named)) socket = named;
  } catch {
    // no daemon has written the file: use the usual path
  }
  let owner;
  try {
    owner = fs.statSync(socket).uid;
  } catch {
    throw new MemdError("daemon_down", "the daemon is not running", "start it: `memd up`");
  }
  if (owner !== process.getuid()) {
    throw new MemdError("refused", `${socket} belongs to uid ${owner}`, "a client connects to its own user's daemon");
  }
  return socket;
}

/** Returns a moment as RFC 3339 with the local offset. */
export function now(moment = new Date()) {
  const minutes = -moment.getTimezoneOffset();
  const two = (number) => String(Math.trunc(Math.abs(number))).padStart(2, "0");
  const local = new Date(moment.getTime() + minutes * 60000).toISOString().slice(0, -1);
  return `${local}${minutes < 0 ? "-" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
}

export class Client {
  constructor({ env = process.env, deadlineMs, program = "memd" } = {}) {
    this.places = places(env);
    this.env = env;
    this.deadlineMs = deadlineMs;
    this.program = program;
    // an empty pass is none, and not the owner either
    this.pass = env.MEMD_PASS === undefined ? {} : { pass: env.MEMD_PASS || "empty" };
    this.rid = 0;
    this.spooled = Promise.resolve();
  }

  /** The variable or file that disables memd, "" while it is enabled. */
  get disabled() {
    const value = this.env.MEMD_DISABLED ?? "";
    if (!NO.includes(value.trim().toLowerCase())) return `MEMD_DISABLED=${value}`;
    const file = path.join(this.places.config, "disabled");
    return fs.existsSync(file) ? file : "";
  }

  close() {
    this.connection?.end();
    this.connection = undefined;
  }

  /** Sends any request of docs/PROTOCOL.md; resolves with the `data` of its reply, rejects with MemdError. */
  async ask(request, fields = {}) {
    const why = this.disabled;
    if (why) return emptyAnswer(request, fields, why);
    const rid = ++this.rid;
    const body = Buffer.from(JSON.stringify({ request, rid, ...this.pass, ...fields }));
    if (body.length > BODY_LIMIT) {
      throw new MemdError("too_large", `a request of ${body.length} bytes`, `send at most ${BODY_LIMIT} at once`);
    }
    if (!this.connection || this.connection.closed) this.connection = new Connection(socketPath(this.places));
    const connection = this.connection;
    const patience = this.deadlineMs ?? (FAST.includes(request) && !fields.deep ? FAST_MS : SLOW_MS);
    const limit = patience + (fields.wait_ms ?? 0);
    let timer;
    const late = new Promise((_, reject) => {
      const problem = new MemdError("deadline_exceeded", `no answer within ${limit} ms`, "see `memd status`");
      timer = setTimeout(() => reject(problem), limit);
    });
    try {
      const reply = await Promise.race([connection.exchange(rid, body), late]);
      if (reply.ok) return reply.data;
      throw new MemdError(reply.error.code, reply.error.message, reply.error.hint);
    } finally {
      clearTimeout(timer);
      connection.drop(rid);
    }
  }

  remember(text, options = {}) {
    return this.ask("remember", rememberRequest(text, options));
  }

  /** `capture`, or `{ spooled: true, reason }` when the daemon can't be reached in time and the spool takes it. */
  captureOrSpool(origin, events) {
    return this.#orSpool("capture", { origin, events });
  }

  rememberOrSpool(text, options = {}) {
    return this.#orSpool("remember", rememberRequest(text, options));
  }

  async #orSpool(request, fields) {
    try {
      return await this.ask(request, fields);
    } catch (error) {
      const maySpool = error instanceof MemdError && error.isUnavailable && !this.pass.pass;
      if (!maySpool) throw error; // a pass is read-only
      const write = () => append(path.join(this.places.state, "spool"), { request, ...fields }, this.program, this.env);
      await (this.spooled = this.spooled.then(write, write)); // in the order of the calls
      return { spooled: true, reason: error.message };
    }
  }
}

for (const [name, [request, positional]] of Object.entries(METHODS)) {
  Client.prototype[name] ??= function (...values) {
    const fields = IN_FOLDER.includes(request) ? { cwd: process.cwd() } : {};
    if (DATED.includes(request)) fields.at = now();
    positional.forEach((field, at) => (fields[field] = values[at]));
    return this.ask(request, { ...fields, ...values[positional.length] });
  };
}

function rememberRequest(text, options) {
  const { cwd = process.cwd(), host = "node", turn = randomUUID(), at = now(), role = "user", pool, title } = options;
  const origin = { host, session: options.session || cwd || "anywhere", cwd, ...(title && { title }) };
  return { text, turn, at, role, ...(pool && { pool }), origin };
}

/** Returns the empty answer of a disabled memd. Throws MemdError for other requests. */
function emptyAnswer(request, fields, why) {
  switch (request) {
    case "capture":
      return { accepted: 0, duplicate: 0, changed: 0, refused: [], pool: "", pending: 0, forgotten: 0,
               skipped: fields.events.length, why: "disabled" };
    case "recall":
      return { hits: [], turns: [], scope: [], abstained: true, reason: `memd is disabled by ${why}`, filtered: 0,
               pending: 0, tokens: 0, note: "" };
    case "profile":
      return { text: "", rev: "", ids: [], scope: [], tokens: 0, pending: 0 };
    default:
      throw new MemdError("disabled", `memd is disabled by ${why}`, "unset the variable, or remove the file");
  }
}
