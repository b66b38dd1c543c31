// Which memories a place in a document concerns: those whose quote covers the line, and those that name the word there.
// Nothing here needs an editor.

/** @typedef {import("./client/client.js").MemoryRecord} MemoryRecord */

const LEAST = 8; // letters and digits of a quote: a shorter one is in too many lines
const LONGEST = 1_000_000; // characters of a document that is searched for quotes

/**
 * Returns the records whose quote covers a line, counted from 0. Only letters and digits are compared, so that a
 * paragraph may be wrapped anew and its marks may change.
 * @param {readonly MemoryRecord[]} records @param {string} text @param {number} line
 */
export function coveringLine(records, text, line) {
  if (!records.length || text.length > LONGEST) return [];
  const rows = text.split("\n").map(letters);
  const before = rows.slice(0, line).reduce((sum, row) => sum + row.length, 0);
  const row = rows[line] ?? "";
  if (!row) return [];
  const whole = rows.join("");
  return records.filter((record) => {
    const quote = letters(record.provenance.quote || record.content);
    if (quote.length < LEAST) return false;
    for (let at = whole.indexOf(quote); at >= 0; at = whole.indexOf(quote, at + 1)) {
      if (at < before + row.length && at + quote.length > before) return true;
    }
    return false;
  });
}

/** @param {string} text */
function letters(text) {
  return text.toLowerCase().replace(/[^\p{L}\p{M}\p{N}]+/gu, "");
}

/** The characters of a name: of a symbol, a file or a path. */
export const NAME = /[\p{L}\p{N}_$][\p{L}\p{N}_$./-]*/u;

/**
 * Returns the records that name a symbol or file. A name that is also an ordinary word, such as `settle`, counts only
 * where a record marks it as code.
 * @param {readonly MemoryRecord[]} records @param {string} word
 */
export function naming(records, word) {
  const name = word.replace(/[./-]+$/, "");
  if (name.length < 3) return [];
  const isName = /[_$\d./]|\p{Ll}\p{Lu}/u.test(name);
  const literal = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const pattern = new RegExp(
    isName ? `(?<![\\p{L}\\p{N}_$])${literal}(?![\\p{L}\\p{N}_$])` : `\`[^\`\\n]*\\b${literal}\\b[^\`\\n]*\``, "u");
  return records.filter((record) => pattern.test(record.content));
}
