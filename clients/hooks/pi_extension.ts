// memd in pi: adds your profile, and what the prompt recalls, to the system prompt of every turn, and captures each
// session after its turns.
// `memd setup pi` writes this file, `memd unsetup pi` removes it. pi works on if memd fails.
import { execFile } from "node:child_process";

const COMMAND: string[] = __COMMAND__;
const LIMIT_MS = 250;

function call(event: string, ctx: any, prompt = ""): Promise<any> {
	const about = {
		prompt,
		session_id: ctx.sessionManager.getSessionId(),
		transcript_path: ctx.sessionManager.getSessionFile() ?? "",
		cwd: ctx.cwd,
	};
	return new Promise((resolve) => {
		const child = execFile(COMMAND[0], [...COMMAND.slice(1), event], (_, output) => {
			clearTimeout(timer);
			try {
				resolve(JSON.parse(output || "{}"));
			} catch {
				resolve({});
			}
		});
		// Output that arrived while pi was busy is read before the process is killed.
		const timer = setTimeout(() => setImmediate(() => child.kill("SIGKILL")), LIMIT_MS);
		child.stdin?.on("error", () => {});
		child.stdin?.end(JSON.stringify(about));
	});
}

export default function (pi: any) {
	pi.on("before_agent_start", async (event: any, ctx: any) => {
		process.env.MEMD_SESSION = `pi:${ctx.sessionManager.getSessionId()}`; // for the shell commands of the session
		const { context } = await call("before_agent_start", ctx, event.prompt ?? "");
		return context ? { systemPrompt: `${event.systemPrompt}\n\n${context}` } : undefined;
	});
	let noted: Promise<any> = Promise.resolve(); // pi starts these without waiting: this keeps the end last
	for (const name of ["agent_end", "session_before_compact", "session_shutdown"]) {
		pi.on(name, async (event: any, ctx: any) => {
			if (event.reason === "reload") return;
			noted = noted.then(() => call(name, ctx));
			await noted;
		});
	}
}
