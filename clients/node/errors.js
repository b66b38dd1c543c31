/** An error: `code` is stable (docs/PROTOCOL.md), `hint` says how to continue. */
export class MemdError extends Error {
  constructor(code, message, hint = "") {
    super(message);
    this.name = "MemdError";
    this.code = code;
    this.hint = hint;
  }

  /** Whether the daemon can't be reached now, so that sending again later may work. */
  get isUnavailable() {
    return ["unavailable", "daemon_down", "deadline_exceeded", "stopping"].includes(this.code);
  }
}
