// One DEALER connection to the daemon's ROUTER: ZMTP 3.0, NULL mechanism, over a Unix socket.
// It sends no message before the peer's READY (libzmq would close the connection); a reply completes the call of its `rid`.
import net from "node:net";
import { MemdError } from "./errors.js";

const MORE = 1, LONG = 2, COMMAND = 4;
const FRAME_LIMIT = 256 * 1024 * 1024;
const START = "start it: `memd up`";
const GREETING = Buffer.concat([
  Buffer.from([0xff]), Buffer.alloc(8), Buffer.from([0x7f, 3, 0]), Buffer.from("NULL".padEnd(20, "\0")), Buffer.alloc(32),
]);
const READY = Buffer.concat([
  Buffer.from("\x05READY\x0bSocket-Type\0\0\0\x06DEALER\x08Identity\0\0\0\0", "latin1"),
]);

/** @param {Buffer} body @param {number} flags */
function frame(body, flags = 0) {
  if (body.length < 256) return Buffer.concat([Buffer.from([flags, body.length]), body]);
  const head = Buffer.alloc(9);
  head[0] = flags | LONG;
  head.writeBigUInt64BE(BigInt(body.length), 1);
  return Buffer.concat([head, body]);
}

export class Connection {
  /** @param {string} path */
  constructor(path) {
    this.path = path;
    this.closed = false;
    this.pieces = [];
    this.size = 0;
    this.calls = new Map();
    this.greeted = false;
    this.ready = new Promise((resolve, reject) => {
      this.opened = resolve;
      this.refused = reject;
    });
    this.ready.catch(() => {});
    this.socket = net.createConnection({ path });
    this.socket.on("connect", () => this.socket.write(Buffer.concat([GREETING, frame(READY, COMMAND)])));
    this.socket.on("data", (piece) => this.#receive(piece));
    this.socket.on("error", (error) => this.end(this.#problem(error)));
    this.socket.on("close", () => this.end(new MemdError("daemon_down", "the daemon closed the connection", START)));
    this.hold(false);
  }

  /** Sets whether the process stays alive for this connection: only while a call is pending. */
  hold(on) {
    if (on) this.socket.ref();
    else this.socket.unref();
  }

  #problem(error) {
    if (error.code === "EACCES" || error.code === "EPERM") {
      const hint = "each user runs their own memd daemon";
      return new MemdError("refused", `${this.path} belongs to another user`, hint);
    }
    if (error.code === "ENOENT" || error.code === "ECONNREFUSED") {
      return new MemdError("daemon_down", "the daemon is not running", START);
    }
    return new MemdError("daemon_down", `the connection broke: ${error.message}`, START);
  }

  /** Sends one body; resolves with the reply of its number. */
  async exchange(rid, body) {
    let waiting;
    const answer = new Promise((resolve, reject) => (waiting = { resolve, reject }));
    answer.catch(() => {});
    this.calls.set(rid, waiting);
    this.hold(true);
    try {
      await this.ready;
      this.socket.write(frame(body));
      return await answer;
    } finally {
      this.drop(rid);
    }
  }

  /** Forgets a call. */
  drop(rid) {
    this.calls.delete(rid);
    if (!this.calls.size) this.hold(false);
  }

  /** Closes the connection; every pending call rejects with `problem`. */
  end(problem = new MemdError("daemon_down", "the client was closed")) {
    if (this.closed) return;
    this.closed = true;
    this.refused(problem);
    for (const call of this.calls.values()) call.reject(problem);
    this.socket.destroy();
  }

  #receive(piece) {
    this.pieces.push(piece);
    this.size += piece.length;
    if (this.needs && this.size < this.needs) return; // a large reply arrives in many pieces, which are joined once
    let buffer = this.pieces.length > 1 ? Buffer.concat(this.pieces) : piece;
    this.needs = 0;
    while (!this.closed) {
      const rest = this.greeted ? this.#frame(buffer) : this.#greeting(buffer);
      if (!rest) break;
      buffer = rest;
    }
    this.pieces = buffer.length ? [buffer] : [];
    this.size = buffer.length;
  }

  #greeting(buffer) {
    if (buffer.length < 64) return null;
    if (buffer[0] !== 0xff || buffer[10] < 3 || buffer.toString("latin1", 12, 16) !== "NULL") {
      const hint = "is another program using the path?";
      this.end(new MemdError("unavailable", `the program at ${this.path} does not speak ZMTP 3`, hint));
      return null;
    }
    this.greeted = true;
    return buffer.subarray(64);
  }

  /** Returns the bytes behind the first frame, null while the frame is incomplete. */
  #frame(buffer) {
    if (buffer.length < 2 || (buffer[0] & LONG && buffer.length < 9)) return null;
    const flags = buffer[0];
    const start = flags & LONG ? 9 : 2;
    const size = flags & LONG ? Number(buffer.readBigUInt64BE(1)) : buffer[1];
    if (flags > (MORE | LONG | COMMAND) || size > FRAME_LIMIT) {
      const hint = "restart it: `memd down; memd up`";
      this.end(new MemdError("unavailable", "the daemon sent bytes that are not a ZMTP frame", hint));
      return null;
    }
    if (buffer.length < start + size) {
      this.needs = start + size;
      return null;
    }
    this.#take(flags, buffer.subarray(start, start + size));
    return buffer.subarray(start + size);
  }

  #take(flags, body) {
    if (flags & COMMAND) {
      if (body.toString("latin1", 0, 6) === "\x05READY") this.opened();
      if (body.toString("latin1", 0, 5) === "\x04PING") {
        this.socket.write(frame(Buffer.concat([Buffer.from("\x04PONG"), body.subarray(7)]), COMMAND));
      }
    } else if (!(flags & MORE)) {
      const reply = JSON.parse(body.toString());
      // 0 answers bytes that the daemon could not read
      const rid = reply.rid || this.calls.keys().next().value;
      this.calls.get(rid)?.resolve(reply);
    }
  }
}
