/** memd's client for Node. requests.d.ts has the methods and the types of their replies. */
import type * as requests from "./requests.js";

export type * from "./requests.js";
export type Role = "user" | "assistant";
/** An error: `code` is one of docs/PROTOCOL.md, `hint` says how to continue. */
export class MemdError extends Error {
  constructor(code: string, message: string, hint?: string);
  readonly code: string;
  readonly hint: string;
  readonly isUnavailable: boolean;
}

/** An event of a capture: `turn` is unique in its document and the same each time it is sent. */
export type Event = Parameters<requests.RequestMethods["capture"]>[1][number];

/** The daemon could not be reached in time: it reads the request from the spool later. */
export interface Spooled { spooled: true; reason: string }

export interface ClientOptions {
  /** Replaces the process's own environment. */
  env?: { [name: string]: string | undefined };
  /** The deadline of every call; by default 2 s for fast requests, 10 s for others. */
  deadlineMs?: number;
  /** The name or path of `memd`, which stores requests without their secrets while the daemon is down; by default `memd`. */
  program?: string;
}
export interface RememberOptions {
  cwd?: string;
  host?: string;
  /** The name of the document that the text is from, unique for its host; by default `cwd`. */
  session?: string;
  /** The title of that document. */
  title?: string;
  turn?: string;
  at?: string;
  role?: Role;
  pool?: string;
}

export interface Client extends requests.RequestMethods {}
export class Client {
  constructor(options?: ClientOptions);
  /** The option of that name; a new value counts from the next call. */
  program: string;
  /** The option of that name. */
  readonly env: { [name: string]: string | undefined };
  /** The variable or file that disables memd, "" while it is enabled. */
  readonly disabled: string;
  /** Sends any request of docs/PROTOCOL.md. Rejects with MemdError. */
  ask<Data = unknown>(request: string, fields?: object): Promise<Data>;
  /**
   * Saves a text as a memory, which can be recalled when this resolves. `pool`: `personal`, `project` (of `cwd`) or a
   * pool's name; by default the text's subject decides.
   */
  remember(text: string, options?: RememberOptions): Promise<requests.Remembered>;
  captureOrSpool(origin: requests.Origin, events: Event[]): Promise<requests.Taken | Spooled>;
  rememberOrSpool(text: string, options?: RememberOptions): Promise<requests.Remembered | Spooled>;
  close(): void;
}

/** Returns a moment as RFC 3339 with the local offset. */
export function now(moment?: Date): string;
/** Returns the folders of an environment. */
export function places(env?: { [name: string]: string | undefined }): { state: string; config: string; run: string };
