// Requests that wait on this machine while the daemon can't be reached: one file of JSON lines for each process, in the
// spool folder, which the daemon reads. Secrets and <private> spans are removed before they are written.
import fs from "node:fs";
import path from "node:path";
import { MemdError } from "./errors.js";
import { RULES } from "./secrets.js";

export const SPOOL_LIMIT = 16 * 1024 * 1024;
const BEGAN = Math.floor(Date.now() / 1000);
const MARK = /(?:<|&lt;|\\u003c)\s{0,8}(\\?\/)?\s{0,8}private((?:\s[^<>]{0,200}|\/)?)(?:>|&gt;|\\u003e)/gi;

/** Returns `text` with each secret of the short list replaced by `[redacted:<rule>]`. */
export function redact(text) {
  const folded = text.toLowerCase();
  for (const [name, rule, clues] of RULES) {
    if (!clues.some((clue) => folded.includes(clue))) continue;
    text = text.replace(rule, (whole, ...rest) => {
      const groups = rest.at(-1);
      const secret = groups && typeof groups === "object" ? Object.values(groups).find((group) => group !== undefined) : "";
      const at = secret ? whole.lastIndexOf(secret) : -1;
      const mark = `[redacted:${name}]`;
      return at < 0 ? mark : whole.slice(0, at) + mark + whole.slice(at + secret.length);
    });
  }
  return text;
}

/** Returns `text` with `[private]` for each outermost private span; an unclosed span ends with the text. */
export function withoutPrivate(text) {
  let rest = "", depth = 0, upto = 0;
  for (const mark of text.matchAll(MARK)) {
    const opens = !mark[1], empty = mark[2].trimEnd().endsWith("/");
    if (depth === 0 && opens) rest += text.slice(upto, mark.index) + "[private]";
    if (opens && !empty) depth += 1;
    else if (!opens && depth) depth -= 1;
    else if (depth === 0 && !opens) continue;
    if (depth === 0) upto = mark.index + mark[0].length;
  }
  return rest + (depth === 0 ? text.slice(upto) : "");
}

const clean = (text) => (typeof text === "string" ? redact(withoutPrivate(text)) : text);

function cleanEvent(event) {
  const changed = { ...event };
  for (const name of ["text", "command", "arguments"]) if (name in changed) changed[name] = clean(changed[name]);
  return changed;
}

/** Appends a `capture` or a `remember`, synced; returns the size of this process's file in bytes. */
export function append(folder, request) {
  const wish = { ...request };
  delete wish.rid;
  if (wish.request === "capture") wish.events = wish.events.map(cleanEvent);
  else wish.text = clean(wish.text);
  const line = Buffer.from(JSON.stringify(wish) + "\n");
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = fs.openSync(path.join(folder, `node-${process.pid}-${BEGAN}.lines`), "a", 0o600);
  try {
    const size = fs.fstatSync(file).size;
    if (size + line.length > SPOOL_LIMIT) {
      throw new MemdError("too_large", `the spool is full: ${size} bytes wait`, "start the daemon: `memd up`");
    }
    fs.writeSync(file, line);
    fs.fsyncSync(file);
    return size + line.length;
  } finally {
    fs.closeSync(file);
  }
}
