// memd in opencode: adds your profile, and what the prompt recalls, to the system prompt of every turn, gives the agent
// memd's tools, and captures each session after its turns.
// `memd setup opencode` writes this file, `memd unsetup opencode` removes it. opencode works on if memd fails.
import { execFile } from "node:child_process"
import { homedir } from "node:os"
import { join } from "node:path"

const COMMAND = __COMMAND__
const SERVER = __SERVER__
const VARIABLES = __VARIABLES__
const LIMIT_MS = 250
const STORE = join(process.env.XDG_DATA_HOME || join(homedir(), ".local", "share"), "opencode", "opencode.db")

function call(event, session, cwd, prompt = "") {
	return new Promise((resolve) => {
		const child = execFile(COMMAND[0], [...COMMAND.slice(1), event], { timeout: LIMIT_MS, killSignal: "SIGKILL" }, (_, output) => {
			try {
				resolve(JSON.parse(output || "{}"))
			} catch {
				resolve({})
			}
		})
		child.on("error", () => resolve({}))
		child.stdin?.on("error", () => {})
		child.stdin?.end(JSON.stringify({ session_id: session, transcript_path: STORE, cwd, prompt }))
	})
}

export const Memd = async ({ directory }) => {
	const contexts = new Map() // of the running turn of each session
	return {
		config: async (config) => {
			config.mcp = { ...config.mcp, memd: { type: "local", command: SERVER, environment: VARIABLES, enabled: true } }
		},
		"chat.message": async ({ sessionID }, { parts }) => {
			const prompt = parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text).join("\n")
			const { context } = await call("chat.message", sessionID, directory, prompt)
			contexts.set(sessionID, context ?? "")
		},
		"experimental.chat.system.transform": async ({ sessionID }, { system }) => {
			const context = contexts.get(sessionID)
			if (context) system.push(context)
		},
		event: async ({ event }) => {
			const session = event.properties?.sessionID
			if (event.type === "session.idle") await call("session.idle", session, directory)
			if (event.type === "session.deleted") contexts.delete(session)
		},
	}
}
