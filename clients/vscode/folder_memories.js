// The memories of a document and of its project, read once in a while, so that pointing at a line costs no request.
// memd counts no use of what is read here.
import { coveringLine, naming } from "./source_lines.js";

/** @typedef {import("./client/client.js").Client} Client */
/** @typedef {import("./client/client.js").MemoryRecord} MemoryRecord */

const KEEP_MS = 30_000;
const NEWEST = 500; // records of the project's scope in which names are looked up
const OF_DOCUMENT = 200;
const SHOWN = 3;
const HOSTS = ["markdown", "vscode"]; // whose documents are files
/** @type {NonNullable<Parameters<Client["list"]>[0]>["statuses"]} */
const BELIEVED = ["active", "provisional", "quarantined"];

export class FolderMemories {
  /** @param {Client} client */
  constructor(client) {
    this.client = client;
    /** @type {Map<string, { until: number, records: Promise<MemoryRecord[]> }>} */
    this.read = new Map();
  }

  /** Reads everything anew at the next question. */
  forget() {
    this.read.clear();
  }

  /**
   * Resolves with at most three records that concern a place, those first that came from the line. Rejects with
   * MemdError. `line` counts from 0.
   * @param {{ file: string, folder: string, text: string, line: number, word: string }} place
   */
  async at({ file, folder, text, line, word }) {
    const [own, near] = await Promise.all([this.#ofDocument(file), word ? this.#ofScope(folder) : []]);
    const records = [...coveringLine(own, text, line), ...naming(near, word)];
    const distinct = new Map(records.map((record) => [record.id, record]));
    return [...distinct.values()].slice(0, SHOWN);
  }

  /** @param {string} file */
  #ofDocument(file) {
    return this.#once(`document ${file}`, async () => {
      const wish = { statuses: BELIEVED, limit: OF_DOCUMENT };
      const pages = HOSTS.map((host) => this.client.list({ ...wish, document: `${host}:${file}` }));
      return (await Promise.all(pages)).flatMap((page) => page.records);
    });
  }

  /** @param {string} folder */
  #ofScope(folder) {
    return this.#once(`scope ${folder}`, async () => {
      const pools = folder ? (await this.client.whyScope(folder)).reads : ["personal"];
      return (await this.client.list({ pools, statuses: BELIEVED, limit: NEWEST })).records;
    });
  }

  /**
   * Returns what was read in the last half minute, else reads it; a failure is kept as long, so that a daemon that is
   * down is not asked at each line.
   * @param {string} name @param {() => Promise<MemoryRecord[]>} read
   */
  #once(name, read) {
    const now = Date.now();
    for (const [key, kept] of this.read) if (kept.until < now) this.read.delete(key);
    const kept = this.read.get(name) ?? { until: now + KEEP_MS, records: read() };
    kept.records.catch(() => {}); // who asks gets it
    this.read.set(name, kept);
    return kept.records;
  }
}
