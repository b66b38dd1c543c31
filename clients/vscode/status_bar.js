// The item of the status bar: whether the daemon runs, whether capture is paused, how many proposals wait; and its menu.
import * as vscode from "vscode";
import { folderOf } from "./commands.js";
import { statusWords } from "./wording.js";

/** @typedef {import("./client/client.js").Client} Client */

const EVERY_MS = 15_000;

export class StatusBar {
  /** @param {Client} client */
  constructor(client) {
    this.client = client;
    this.item = vscode.window.createStatusBarItem("memd", vscode.StatusBarAlignment.Right, 50);
    this.item.name = "memd";
    this.item.command = "memd.menu";
    this.state = { isUp: false, isPaused: false, inbox: 0 };
    this.timer = setInterval(() => vscode.window.state.focused && this.refresh(), EVERY_MS);
    this.focus = vscode.window.onDidChangeWindowState(({ focused }) => focused && this.refresh());
    void this.refresh();
  }

  dispose() {
    clearInterval(this.timer);
    this.focus.dispose();
    this.item.dispose();
  }

  async refresh() {
    if (!vscode.workspace.getConfiguration("memd").get("statusBar", true)) {
      this.item.hide();
      return;
    }
    try {
      if (this.client.disabled) this.#set("$(circle-slash) memd off", `memd is disabled by ${this.client.disabled}`);
      else await this.#ask();
    } catch (error) {
      const { message, hint = "" } = /** @type {import("./client/client.js").MemdError} */ (error);
      this.#set("$(circle-slash) memd", [`memd: ${message}`, hint].filter(Boolean).join("\n"));
    }
    this.item.show();
  }

  async #ask() {
    const status = await this.client.status();
    const { text, tip, paused } = statusWords(status, folderOf(vscode.window.activeTextEditor?.document));
    this.#set(text, tip, { isUp: true, isPaused: Boolean(paused), inbox: status.inbox });
  }

  /** @param {string} text @param {string} tip */
  #set(text, tip, state = { isUp: false, isPaused: false, inbox: 0 }) {
    this.item.text = text;
    this.item.tooltip = tip;
    this.state = state;
  }

  /** Shows what the user can do now. */
  async menu() {
    await this.refresh();
    const { isUp, isPaused, inbox } = this.state;
    const items = isUp
      ? [
          { label: "$(search) Recall", command: "memd.recall" },
          { label: `$(inbox) Inbox: ${inbox}`, command: "memd.inbox" },
          { label: "$(browser) Open the panel", command: "memd.panel" },
          isPaused
            ? { label: "$(debug-continue) Resume capture", command: "memd.pause" }
            : { label: "$(debug-pause) Pause capture for an hour", command: "memd.pause" },
        ]
      : [{ label: "$(play) Start memd", command: "memd.start" }];
    const item = await vscode.window.showQuickPick(items, { title: "memd", placeHolder: String(this.item.tooltip) });
    if (item) await vscode.commands.executeCommand(item.command);
  }
}
