// Requests that wait on this machine while the daemon can't be reached: one file of JSON lines for each process, in the
// spool folder, which the daemon reads. `memd spool` writes it, without secrets and <private> spans; it gets the request
// on its standard input. Without that program nothing is stored.
import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { MemdError } from "./errors.js";

const BEGAN = Math.floor(Date.now() / 1000);
const LIMIT_MS = 30000;

/** Stores a `capture` or a `remember`, synced. Rejects with MemdError. `program`: the name or path of `memd`. */
export function append(folder, request, program, env) {
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = path.join(folder, `node-${process.pid}-${BEGAN}.lines`);
  return new Promise((resolve, reject) => {
    const child = execFile(program, ["spool", "--json", file], { env, timeout: LIMIT_MS }, (failure, output) => {
      const problem = failure && problemIn(output);
      if (problem) reject(new MemdError(problem.code, problem.message, problem.hint));
      else if (failure) reject(notRun(program, failure));
      else resolve();
    });
    child.stdin.on("error", () => {}); // it ended before it read the request: its exit code says why
    child.stdin.end(JSON.stringify(request) + "\n");
  });
}

function problemIn(output) {
  try {
    return JSON.parse(output).error;
  } catch {
    return undefined;
  }
}

function notRun(program, failure) {
  const why = failure.code ?? failure.signal;
  const hint = "start the daemon: `memd up`; or name the program by the option `program`";
  return new MemdError("unavailable", `the daemon is not running, and \`${program} spool\` fails: ${why}`, hint);
}
