/** memd's client for Node. Every answer's fields stand in docs/PROTOCOL.md and protocol/reply.py. */

export type Role = "user" | "assistant";
export type Trust = "user" | "assistant" | "tool" | "document";

/** What went wrong; `code` is one of docs/PROTOCOL.md, `hint` says what to do next. */
export class MemdError extends Error {
  constructor(code: string, message: string, hint?: string);
  readonly code: string;
  readonly hint: string;
  readonly isUnavailable: boolean;
}

export interface Repository { root?: string; root_commit?: string; remote?: string }

/** Where events come from; `host` and `session` name the document. */
export interface Origin {
  host: string;
  session: string;
  cwd?: string;
  repository?: Repository;
  agent?: string;
  live?: boolean;
  title?: string;
  visibility?: "private" | "shared";
}

/** `turn` is unique in its document and the same each time it is sent; `at` is RFC 3339 with an offset. */
interface Happened { turn: string; at: string }
export type Event =
  | (Happened & { event: "said"; role: Role; text: string })
  | (Happened & { event: "noted"; text: string; role?: Role })
  | (Happened & { event: "wrote"; text: string; author?: string; path?: string })
  | (Happened & { event: "tool_called"; name: string; arguments?: string; outcome?: "ok" | "error" | "unknown" })
  | (Happened & { event: "ran"; command: string; exit_status?: number; duration_ms?: number })
  | (Happened & { event: "session_started" | "session_ended"; reason?: string });

export interface MemoryRecord {
  id: string;
  pool: string;
  kind: string;
  type: string;
  content: string;
  description: string;
  status: string;
  [field: string]: unknown;
}

export interface Hit { record: MemoryRecord; score: number; parts?: { [name: string]: number } }
export interface Heard {
  document: string; turn: string; at: string; trust: Trust; quote: string; start: number; end: number; score: number;
}
export interface Recalled {
  hits: Hit[];
  turns: Heard[];
  scope: string[];
  abstained: boolean;
  reason: string;
  nearest?: { id: string; description: string; score: number } | null;
  filtered: number;
  pending: number;
  tokens: number;
  note: string;
  period?: [string, string] | null;
  linked: { record: MemoryRecord; hops: number; via: string }[];
}
export interface ProfileText {
  text: string; rev: string; ids: string[]; scope: string[]; tokens: number; pending: number;
}
export interface Taken {
  accepted: number;
  duplicate: number;
  changed: number;
  refused: { turn: string; problem: { code: string; message: string; hint?: string } }[];
  pool: string;
  pending: number;
  forgotten: number;
  skipped: number;
  why: "" | "paused" | "ignored" | "disabled";
}
export interface Remembered { record: MemoryRecord; duplicate: boolean }
export interface Status {
  version: string;
  pid: number;
  started_at: string;
  pending: number;
  worker: string;
  records: { [status: string]: number };
  last: { [name: string]: { at?: string; what?: string } };
  failures: string[];
  troubles: string[];
  [field: string]: unknown;
}
/** The daemon could not be reached in time: it takes the request from the spool when it is. */
export interface Spooled { spooled: true; reason: string }

export interface ClientOptions {
  /** Instead of the process's own environment. */
  env?: { [name: string]: string | undefined };
  /** For every call; by default 2 s to read and 10 s to write. */
  deadlineMs?: number;
}
export interface Scope { cwd?: string; pools?: string[]; repository?: Repository }
export interface RecallOptions extends Scope {
  limit?: number; budget_tokens?: number; include_retired?: boolean; explain?: boolean; as_of?: string;
  believed_at?: string; agent?: string; deep?: boolean;
  /** The session that asks (`host:session`): what it is told is not learnt from it again. */
  document?: string;
}
export interface RememberOptions { cwd?: string; host?: string; turn?: string; at?: string; role?: Role }

export class Client {
  constructor(options?: ClientOptions);
  /** What switches memd off, "" while it is on. */
  readonly disabled: string;
  /** Any request of docs/PROTOCOL.md. Rejects with MemdError. */
  ask<Data = unknown>(request: string, fields?: object): Promise<Data>;
  recall(query: string, options?: RecallOptions): Promise<Recalled>;
  profile(options?: Scope & { budget_tokens?: number; document?: string; agent?: string }): Promise<ProfileText>;
  get(id: string, options?: { as_of?: string; believed_at?: string }): Promise<MemoryRecord>;
  status(): Promise<Status>;
  /** Durable when it resolves. */
  capture(origin: Origin, events: Event[]): Promise<Taken>;
  /** Can be recalled when it resolves. */
  remember(text: string, options?: RememberOptions): Promise<Remembered>;
  captureOrSpool(origin: Origin, events: Event[]): Promise<Taken | Spooled>;
  rememberOrSpool(text: string, options?: RememberOptions): Promise<Remembered | Spooled>;
  close(): void;
}

/** `text` with each secret of the short list replaced. */
export function redact(text: string): string;
/** `text` with `[private]` for each private span. */
export function withoutPrivate(text: string): string;
/** A moment as RFC 3339 with the local offset. */
export function now(moment?: Date): string;
/** The folders of an environment. */
export function places(env?: { [name: string]: string | undefined }): { state: string; config: string; run: string };
