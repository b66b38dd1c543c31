// Hovers: the memories that came from the line, or that name the word. The editor asks when the pointer rests.
import fs from "node:fs/promises";
import * as vscode from "vscode";
import { fileOf, folderOf } from "./commands.js";
import { NAME } from "./source_lines.js";
import { facts, oneLine, source } from "./wording.js";

/** @typedef {import("./folder_memories.js").FolderMemories} FolderMemories */

const WAIT_MS = 2000; // what arrives later is shown at the next hover
const PROSE = ["markdown", "plaintext"]; // whose words are no names

/** @implements {vscode.HoverProvider} */
export class MemoryHover {
  /** @param {FolderMemories} memories */
  constructor(memories) {
    this.memories = memories;
  }

  /** @param {vscode.TextDocument} document @param {vscode.Position} position */
  async provideHover(document, position) {
    if (!vscode.workspace.getConfiguration("memd").get("hover", true)) return undefined;
    const range = document.getWordRangeAtPosition(position, NAME);
    const word = range && !PROSE.includes(document.languageId) ? document.getText(range) : "";
    const reading = fs.realpath(fileOf(document)).then((file) =>
      this.memories.at({ file, folder: folderOf(document), text: document.getText(), line: position.line, word }));
    const records = await Promise.race([reading.catch(() => []), late()]); // silent while the daemon is down
    return records.length ? new vscode.Hover(records.map(shown)) : undefined;
  }
}

/** @returns {Promise<never[]>} */
function late() {
  return new Promise((resolve) => void setTimeout(resolve, WAIT_MS, []));
}

/** @param {import("./client/client.js").MemoryRecord} record */
function shown(record) {
  const id = encodeURIComponent(JSON.stringify([record.id]));
  const text = new vscode.MarkdownString(
    `**memd** ${escaped(oneLine(record.description || record.content))}\n\n` +
    `${escaped(`${facts(record)} · ${source(record)}`)} · [Why](command:memd.why?${id})`);
  text.isTrusted = { enabledCommands: ["memd.why"] };
  return text;
}

/** Returns a text as Markdown that shows it as it is, without links and commands. @param {string} text */
function escaped(text) {
  return text.replace(/[!-/:-@[-`{-~]/g, "\\$&");
}
