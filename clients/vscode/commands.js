// The commands: recall, why, remember, inbox, pause, panel.
import { execFile } from "node:child_process";
import path from "node:path";
import * as vscode from "vscode";
import { MemdError } from "./client/client.js";
import { oneLine, poolName, proposalText, results, whyPage } from "./wording.js";

/** @typedef {import("./client/client.js").Client} Client */
/** @typedef {ReturnType<typeof results>[number]} Result */

const SCHEME = "memd-page", LANGUAGE = "memd-page";
const PAUSE_S = 3600;
const START_MS = 30_000;
const DECIDED_HERE = ["conflict", "duplicate", "forget"];

/** Returns the file of a document on a disk, "" for any other. @param {vscode.TextDocument} [document] */
export function fileOf(document) {
  return document?.uri.scheme === "file" ? document.uri.fsPath : "";
}

/** Returns the workspace's folder of a document, or the folder of its file; "" for none. @param {vscode.TextDocument} [document] */
export function folderOf(document) {
  const file = fileOf(document);
  const within = document && vscode.workspace.getWorkspaceFolder(document.uri);
  const folder = within ?? (file ? undefined : vscode.workspace.workspaceFolders?.[0]);
  if (folder) return folder.uri.scheme === "file" ? folder.uri.fsPath : "";
  return file && path.dirname(file);
}

export class Commands {
  /** @param {Client} client @param {() => void} changed is called after what may change the status */
  constructor(client, changed) {
    this.client = client;
    this.changed = changed;
    /** @type {Map<string, string>} */
    this.pages = new Map();
    this.pageChanged = new vscode.EventEmitter();
  }

  /** Registers all commands. @returns {vscode.Disposable[]} */
  register() {
    const { commands, workspace } = vscode;
    /** @type {[string, (...values: any[]) => Promise<unknown>][]} */
    const all = [
      ["memd.recall", (query) => this.recall(query)],
      ["memd.why", (id) => this.why(id)],
      ["memd.remember", (pool) => this.remember(pool)],
      ["memd.inbox", () => this.inbox()],
      ["memd.pause", () => this.pause()],
      ["memd.panel", () => this.panel()],
      ["memd.start", () => this.start()],
    ];
    return [
      workspace.registerTextDocumentContentProvider(SCHEME, {
        onDidChange: this.pageChanged.event,
        provideTextDocumentContent: (uri) => this.pages.get(uri.path) ?? "",
      }),
      workspace.onDidCloseTextDocument(({ uri }) => uri.scheme === SCHEME && this.pages.delete(uri.path)),
      ...all.map(([name, run]) => commands.registerCommand(name, (...values) => this.reported(() => run(...values)))),
    ];
  }

  /** Runs a command and shows its problem. @param {() => Promise<unknown>} run */
  async reported(run) {
    try {
      await run();
    } catch (error) {
      if (!(error instanceof MemdError)) throw error;
      const text = `memd: ${error.message}${error.hint ? `; ${error.hint}` : ""}`;
      const offers = error.code === "daemon_down" ? ["Start memd"] : [];
      if (await vscode.window.showWarningMessage(text, ...offers)) await vscode.commands.executeCommand("memd.start");
    }
  }

  /** Asks a question, and shows the results; `query` answers the first. @param {string} [query] */
  async recall(query) {
    const editor = vscode.window.activeTextEditor;
    const words = query ?? (await vscode.window.showInputBox({
      title: "memd: recall", prompt: "A question, or words to search for", value: editor && pointedAt(editor),
    }));
    if (!words?.trim()) return;
    const answer = await this.client.recall(words, { cwd: folderOf(editor?.document) });
    const found = results(answer);
    if (!found.length) {
      const nearest = answer.nearest ? `; nearest: ${oneLine(answer.nearest.description)}` : "";
      void vscode.window.showInformationMessage(`memd: no relevant memory found: ${answer.reason || "no match"}${nearest}`);
      return;
    }
    this.#show(words, found, editor);
  }

  /** @param {string} words @param {Result[]} found @param {vscode.TextEditor} [editor] */
  #show(words, found, editor) {
    const insert = { iconPath: new vscode.ThemeIcon("insert"), tooltip: "Insert the text into the editor" };
    const copy = { iconPath: new vscode.ThemeIcon("copy"), tooltip: "Copy the text" };
    /** @type {vscode.QuickPick<vscode.QuickPickItem & Result>} */
    const pick = vscode.window.createQuickPick();
    pick.title = `memd: ${oneLine(words).slice(0, 60)}`;
    pick.placeholder = "Enter shows why memd has it; the buttons insert or copy the text";
    pick.matchOnDescription = pick.matchOnDetail = true;
    pick.items = found.map((result) => ({ ...result, buttons: editor ? [insert, copy] : [copy] }));
    pick.onDidTriggerItemButton(({ button, item }) => {
      if (button === insert) void editor?.edit((edit) => edit.replace(editor.selection, item.text));
      else void vscode.env.clipboard.writeText(item.text);
      pick.hide();
    });
    pick.onDidAccept(() => {
      const [item] = pick.selectedItems;
      pick.hide();
      if (item?.id) void vscode.commands.executeCommand("memd.why", item.id);
      else if (item) void this.#page("turn", `${item.text}\n\n${item.detail}\n`);
    });
    pick.onDidHide(() => pick.dispose());
    pick.show();
  }

  /** @param {string} id */
  async why(id) {
    await this.#page(id.slice(0, 8), whyPage(await this.client.why(id)));
  }

  /** Shows a text that can't be changed, where the last one stands. @param {string} name @param {string} text */
  async #page(name, text) {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${name}` });
    this.pages.set(uri.path, text);
    this.pageChanged.fire(uri);
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.languages.setTextDocumentLanguage(document, LANGUAGE);
    const last = vscode.window.visibleTextEditors.find((editor) => editor.document.uri.scheme === SCHEME);
    await vscode.window.showTextDocument(document, last?.viewColumn ?? vscode.ViewColumn.Beside);
  }

  /** Saves the selection, or the line, as the user's statement. @param {string} [pool] answers the question */
  async remember(pool) {
    const editor = vscode.window.activeTextEditor;
    const document = editor?.document;
    const text = editor && (document?.getText(editor.selection) || document?.lineAt(editor.selection.active.line).text);
    if (!text?.trim()) {
      void vscode.window.showWarningMessage("memd: no text to remember: select some");
      return;
    }
    const [file, folder] = [fileOf(document), folderOf(document)];
    const choice = pool ?? (await askPool(Boolean(folder)));
    if (choice === undefined) return;
    const session = file || undefined;
    const title = file && vscode.workspace.asRelativePath(file);
    const options = { cwd: folder, host: "vscode", session, title, pool: choice };
    const reply = await this.client.rememberOrSpool(text, options);
    this.changed();
    const said = "spooled" in reply
      ? "the daemon is not running; the text is spooled until it starts"
      : `${reply.duplicate ? "known already" : "remembered"} in ${poolName(reply.record.pool)}`;
    void vscode.window.showInformationMessage(`memd: ${said}`);
  }

  async inbox() {
    const { proposals } = await this.client.inbox();
    if (!proposals.length) {
      void vscode.window.showInformationMessage("memd: no proposal waits for your decision");
      return;
    }
    const items = proposals.map((proposal) => ({
      proposal, label: oneLine(proposal.line), description: proposal.what, detail: oneLine(proposal.against_line || proposal.reason),
    }));
    const item = await vscode.window.showQuickPick(items, { title: "memd: proposals", placeHolder: "Choose one to decide" });
    if (item) await this.#decide(item.proposal);
  }

  /** @param {import("./client/client.js").Waiting} proposal */
  async #decide(proposal) {
    if (!DECIDED_HERE.includes(proposal.what)) {
      const id = proposal.id.slice(0, 8);
      const text = `memd: decide on this one in the panel, or by \`memd inbox accept ${id}\``;
      if (await vscode.window.showInformationMessage(text, "Open the Panel")) await this.panel();
      return;
    }
    const options = { modal: true, detail: proposalText(proposal) };
    const word = await vscode.window.showInformationMessage(`memd proposes: ${proposal.what}`, options, "Accept", "Reject");
    if (!word) return;
    await this.client.decide(word === "Accept", { ids: [proposal.id] });
    this.changed();
  }

  /** Pauses capture for an hour, or ends the pauses. */
  async pause() {
    const { pauses } = await this.client.status();
    if (pauses.length) {
      for (const { folder } of pauses) await this.client.resume({ folder });
      void vscode.window.showInformationMessage("memd: captures again");
    } else {
      await this.client.pause({ for_s: PAUSE_S });
      void vscode.window.showInformationMessage("memd: captures nothing for an hour");
    }
    this.changed();
  }

  /** Opens the panel in a terminal, which serves it, and in a remote window forwards its port. */
  async panel() {
    const cwd = folderOf(vscode.window.activeTextEditor?.document) || undefined;
    const { program: shellPath, env: { PATH } } = this.client; // a terminal looks into PATH only if it is named
    vscode.window.createTerminal({ name: "memd panel", shellPath, shellArgs: ["panel"], env: { PATH }, cwd }).show();
  }

  async start() {
    const { program, env } = this.client;
    await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title: "memd: starting" }, () =>
      new Promise((resolve, reject) => {
        execFile(program, ["up"], { env, timeout: START_MS }, (failure, _, problem) => {
          if (!failure) return resolve(undefined);
          const hint = failure.code === "ENOENT" ? "name the program in the setting memd.program" : "see `memd doctor`";
          return reject(new MemdError("unavailable", oneLine(problem) || `\`${program} up\` fails`, hint));
        });
      }));
    this.changed();
  }
}

/** Returns the selected text, else the word at the cursor. @param {vscode.TextEditor} editor */
function pointedAt({ document, selection }) {
  const range = selection.isEmpty ? document.getWordRangeAtPosition(selection.active) : selection;
  return range ? oneLine(document.getText(range)).slice(0, 500) : "";
}

/** @param {boolean} inProject */
async function askPool(inProject) {
  const items = [
    { label: "By its subject", description: "memd decides", pool: "" },
    { label: "Personal", description: "applies in every folder", pool: "personal" },
    ...(inProject ? [{ label: "Project", description: "applies in this project alone", pool: "project" }] : []),
  ];
  const item = await vscode.window.showQuickPick(items, { title: "memd: remember", placeHolder: "Where does it belong?" });
  return item?.pool;
}
