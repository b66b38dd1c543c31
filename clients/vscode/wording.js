// Memories in words: one line for a list, Markdown for a hover, a page for `why`. Nothing here needs an editor.

/** @typedef {import("./client/client.js").MemoryRecord} MemoryRecord */
/** @typedef {import("./client/client.js").Explained} Explained */
/** @typedef {import("./client/client.js").Recalled} Recalled */
/** @typedef {import("./client/client.js").StatusText} StatusText */
/** @typedef {import("./client/client.js").Waiting} Waiting */

const WHO = { user: "you", assistant: "the assistant", tool: "a tool", document: "a document" };

/** @param {string} text */
export function oneLine(text) {
  return text.replace(/\s+/g, " ").trim();
}

/** @param {string} pool */
export function poolName(pool) {
  return pool.startsWith("unbound/") ? "a folder without a project" : pool;
}

/** @param {MemoryRecord} record */
function state(record) {
  const status = record.status ?? "active";
  if (status === "active" || status === "provisional") return "";
  return status === "quarantined" ? "unconfirmed" : status;
}

/** @param {string} at */
export function day(at) {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? at : time.toLocaleDateString(undefined, { dateStyle: "medium" });
}

/** Returns type, pool and status of a record. @param {MemoryRecord} record */
export function facts(record) {
  return [record.type, poolName(record.pool), state(record)].filter(Boolean).join(" · ");
}

/** Returns who said it, when, and where it was said. @param {MemoryRecord} record */
export function source({ provenance }) {
  return `${WHO[provenance.trust] ?? provenance.trust}, ${day(provenance.said_at)} · ${provenance.source}`;
}

/**
 * Returns the results of a recall, best first.
 * @param {Recalled} answer
 */
export function results(answer) {
  const hits = answer.hits.map((hit) => ({
    id: hit.record.id,
    score: hit.score,
    text: hit.record.content,
    label: oneLine(hit.record.description || hit.record.content),
    description: facts(hit.record),
    detail: source(hit.record),
  }));
  const turns = answer.turns.map((turn) => ({
    id: "",
    score: turn.score,
    text: turn.quote,
    label: `“${oneLine(turn.quote)}”`,
    description: "verbatim from a session",
    detail: `${WHO[turn.trust] ?? turn.trust}, ${day(turn.at)} · ${turn.document}`,
  }));
  return [...hits, ...turns].sort((one, other) => other.score - one.score);
}

/**
 * Returns the page of a record: its text, the turns around its source, and the decisions on it.
 * @param {Explained} explained
 */
export function whyPage({ record, lines, quote_holds, session, project, changes, replaced, replaced_by, changes_if }) {
  const page = [record.description || record.content, "", `${record.id.slice(0, 8)} · ${facts(record)}`];
  page.push(`captured in ${session}${project ? `, ${poolName(project)}` : ""}`, "");
  for (const line of lines) {
    page.push(`${line.cited ? "▶" : " "} ${line.who}, ${day(line.at)}`);
    page.push(...(line.cited ? line.text.split("\n") : [oneLine(line.text).slice(0, 100)]).map((row) => `    ${row}`));
  }
  const { quote } = record.provenance;
  if (quote_holds === null && quote) page.push(`the archive no longer has the source; it said: “${quote}”`);
  if (quote_holds === false) page.push("the quote differs from the archive: run `memd verify`");
  page.push("");
  for (const change of changes) {
    const when = day(new Date(change.at / 1000).toISOString());
    page.push(`${when}: ${change.kind}${change.by ? ` by ${change.by}` : ""}${change.reason ? `: ${change.reason}` : ""}`);
  }
  if (changes_if) page.push(`reconsidered if: ${changes_if}`);
  for (const old of replaced) page.push(`replaced: ${oneLine(old.description)} (${old.id.slice(0, 8)})`);
  if (replaced_by) page.push(`replaced by: ${oneLine(replaced_by.description)} (${replaced_by.id.slice(0, 8)})`);
  return page.join("\n") + "\n";
}

/**
 * Returns what the status bar shows. `folder`: of the editor, "" for none.
 * @param {StatusText} status @param {string} folder
 */
export function statusWords(status, folder) {
  const paused = status.pauses.find((pause) => !pause.folder || isIn(folder, pause.folder));
  const proposals = `${status.inbox} ${status.inbox === 1 ? "proposal waits" : "proposals wait"} for your decision`;
  const total = Object.values(status.records).reduce((sum, number) => sum + number, 0);
  const tip = [`memd ${status.version} runs: ${total} records, ${status.pending} captures to process`];
  if (status.inbox) tip.push(proposals);
  if (paused) {
    const where = paused.folder ? `in ${paused.folder}` : "everywhere";
    tip.push(`Capture is paused ${where}${paused.until ? ` until ${new Date(paused.until).toLocaleTimeString()}` : ""}`);
  }
  tip.push(...status.troubles);
  const icon = paused ? "$(debug-pause)" : status.troubles.length ? "$(warning)" : "$(database)";
  return { text: `${icon} memd${status.inbox ? ` ${status.inbox}` : ""}`, tip: tip.join("\n"), paused };
}

/** @param {string} folder @param {string} above */
function isIn(folder, above) {
  return folder === above || folder.startsWith(`${above}/`);
}

/** Returns what the user needs to know to decide on a proposal. @param {Waiting} proposal */
export function proposalText(proposal) {
  const rows = [proposal.line];
  if (proposal.against_line) rows.push(`against: ${proposal.against_line}`);
  if (proposal.reason) rows.push(`Reason: ${proposal.reason}`);
  if (proposal.if_nothing) rows.push(`If you decide nothing: ${proposal.if_nothing}`);
  if (proposal.what === "forget") rows.push("Accepting deletes the memory permanently from every file.");
  return rows.join("\n");
}
