// memd's client for Node: `import { Client } from "memd"; const client = new Client(); await client.recall("tabs")`.
// A call ends by its deadline; many may be under way at once; nothing keeps the process alive but a call that waits.
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { MemdError } from "./errors.js";
import { append } from "./spool.js";
import { Connection } from "./zmtp.js";

export { MemdError } from "./errors.js";
export { redact, withoutPrivate } from "./spool.js";

const BODY_LIMIT = 4 * 1024 * 1024;
const DEADLINE_MS = { recall: 2000, profile: 2000, get: 2000, status: 2000 };
const OTHER_DEADLINE_MS = 10000;
const NO = ["", "0", "false", "no", "off"];

/** The folders of this environment, as protocol/places.py has them. */
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

/** Where the daemon listens: what the file `socket` names, else the usual place. Throws MemdError. */
function socketPath(here) {
  let found = here.run && path.join(here.run, "memd.sock");
  try {
    const named = fs.readFileSync(path.join(here.state, "socket"), "utf8").trim();
    if (path.isAbsolute(named) && fs.existsSync(named)) found = named;
  } catch {
    // no daemon has written it: the usual place then
  }
  let owner;
  try {
    owner = fs.statSync(found).uid;
  } catch {
    throw new MemdError("daemon_down", "the daemon is not running", "start it: `memd up`");
  }
  if (owner !== process.getuid()) {
    throw new MemdError("refused", `${found} belongs to uid ${owner}`, "memd talks to a daemon of the same user only");
  }
  return found;
}

/** This moment as RFC 3339 with the local offset. */
export function now(moment = new Date()) {
  const minutes = -moment.getTimezoneOffset();
  const two = (number) => String(Math.trunc(Math.abs(number))).padStart(2, "0");
  const local = new Date(moment.getTime() + minutes * 60000).toISOString().slice(0, -1);
  return `${local}${minutes < 0 ? "-" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
}

export class Client {
  constructor({ env = process.env, deadlineMs } = {}) {
    this.places = places(env);
    this.env = env;
    this.deadlineMs = deadlineMs;
    this.rid = 0;
  }

  /** What switches memd off, "" while it is on. */
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

  /** Any request of docs/PROTOCOL.md; resolves with the `data` of its reply, rejects with MemdError. */
  async ask(request, fields = {}) {
    const why = this.disabled;
    if (why) return nothing(request, fields, why);
    const rid = ++this.rid;
    const body = Buffer.from(JSON.stringify({ request, rid, ...fields }));
    if (body.length > BODY_LIMIT) {
      throw new MemdError("too_large", `a request of ${body.length} bytes`, `send at most ${BODY_LIMIT} at once`);
    }
    if (!this.connection || this.connection.closed) this.connection = new Connection(socketPath(this.places));
    const connection = this.connection;
    const limit = this.deadlineMs ?? DEADLINE_MS[request] ?? OTHER_DEADLINE_MS;
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

  recall(query, options = {}) {
    return this.ask("recall", { query, cwd: process.cwd(), ...options });
  }

  profile(options = {}) {
    return this.ask("profile", { cwd: process.cwd(), ...options });
  }

  get(id, options = {}) {
    return this.ask("get", { id, ...options });
  }

  status() {
    return this.ask("status");
  }

  capture(origin, events) {
    return this.ask("capture", { origin, events });
  }

  remember(text, options = {}) {
    return this.ask("remember", wish(text, options));
  }

  /** `capture`, or the spool when the daemon can't be reached in time: then `{ spooled: true, reason }`. */
  captureOrSpool(origin, events) {
    return this.#orSpool("capture", { origin, events });
  }

  rememberOrSpool(text, options = {}) {
    return this.#orSpool("remember", wish(text, options));
  }

  async #orSpool(request, fields) {
    try {
      return await this.ask(request, fields);
    } catch (error) {
      if (!(error instanceof MemdError && error.isUnavailable)) throw error;
      append(path.join(this.places.state, "spool"), { request, ...fields });
      return { spooled: true, reason: error.message };
    }
  }
}

function wish(text, { cwd = process.cwd(), host = "node", turn = randomUUID(), at = now(), role = "user" } = {}) {
  return { text, turn, at, role, origin: { host, session: cwd || "anywhere", cwd } };
}

/** What a disabled memd answers. */
function nothing(request, fields, why) {
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
