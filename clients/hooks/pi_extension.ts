// memd in pi: adds your profile, and what the prompt recalls, to the system prompt of every turn, and captures each
// session after its turns. /memd:reflect asks the agent what lasts of the session; with `memd setup pi --reflect` memd
// asks it once a session by itself.
// `memd setup pi` writes this file, `memd unsetup pi` removes it. pi works on if memd fails.
import { execFile } from "node:child_process";

const COMMAND: string[] = __COMMAND__;
const LIMIT_MS = 250;
const ASKING_LIMIT_MS = 1_000;
const MEMD: string[] = __MEMD__;
const VARIABLES: Record<string, string> = __VARIABLES__;
const MEMD_LIMIT_MS = 20_000;
const REFLECTS: boolean = __REFLECTS__;
const TYPES: string[] = __TYPES__;
const QUESTION: string = __QUESTION__;

const words = (limit: number) => ({ type: "string", maxLength: limit });
const QUOTES = { type: "array", items: words(2000), minItems: 1, maxItems: 3 };
const LEARNING = {
	type: "object",
	properties: { perspective: words(40), text: words(500), quotes: QUOTES },
	required: ["perspective", "text", "quotes"],
	description: "what you learnt from the quotes under one of your perspectives",
};
const STATEMENT = {
	type: "object",
	properties: {
		type: { type: "string", enum: TYPES },
		quotes: QUOTES,
		about: { type: "string", enum: ["user", "project"], description: "whom the user speaks of" },
	},
	required: ["type", "quotes"],
};
const PARAMETERS: any = {
	type: "object",
	properties: {
		title: { ...words(160), description: "the session in one line" },
		statements: { type: "array", items: STATEMENT, maxItems: 12 },
		open: { type: "array", items: words(300), maxItems: 12, description: "what is unfinished, one line each" },
		learnings: { type: "array", items: LEARNING, maxItems: 6, description: "only if memd told you your perspectives" },
	},
};

function run(command: string[], input: string, limit: number, env = process.env): Promise<string> {
	return new Promise((resolve) => {
		const child = execFile(command[0], command.slice(1), { env }, (_, output) => {
			clearTimeout(timer);
			resolve(output);
		});
		// Output that arrived while pi was busy is read before the process is killed.
		const timer = setTimeout(() => setImmediate(() => child.kill("SIGKILL")), limit);
		child.stdin?.on("error", () => {});
		child.stdin?.end(input);
	});
}

async function call(event: string, ctx: any, prompt = "", options: string[] = []): Promise<any> {
	const about = {
		prompt,
		session_id: ctx.sessionManager.getSessionId(),
		transcript_path: ctx.sessionManager.getSessionFile() ?? "",
		cwd: ctx.cwd,
	};
	const limit = options.length ? ASKING_LIMIT_MS : LIMIT_MS;
	try {
		return JSON.parse((await run([...COMMAND, event, ...options], JSON.stringify(about), limit)) || "{}");
	} catch {
		return {};
	}
}

function nameSession(ctx: any) {
	process.env.MEMD_SESSION = `pi:${ctx.sessionManager.getSessionId()}`; // for the shell commands of the session
}

async function reflect(given: any, ctx: any): Promise<any> {
	const command = [...MEMD, "session", "reflect", `pi:${ctx.sessionManager.getSessionId()}`, "-", "--json"];
	const env = { ...process.env, ...VARIABLES };
	let answer: any = {};
	try {
		answer = JSON.parse(await run(command, JSON.stringify(given), MEMD_LIMIT_MS, env));
	} catch {}
	const problem = answer.error ? `${answer.error.message}. ${answer.error.hint ?? ""}` : "memd did not answer.";
	const text = answer.ok ? answer.data.lines.join("\n") : problem;
	return { content: [{ type: "text", text }], details: answer.data ?? {} };
}

export default function (pi: any) {
	pi.on("before_agent_start", async (event: any, ctx: any) => {
		nameSession(ctx);
		const { context } = await call("before_agent_start", ctx, event.prompt ?? "");
		return context ? { systemPrompt: `${event.systemPrompt}\n\n${context}` } : undefined;
	});
	let noted: Promise<any> = Promise.resolve(); // pi starts these without waiting: this keeps the end last
	for (const name of ["agent_end", "session_before_compact", "session_shutdown"]) {
		pi.on(name, async (event: any, ctx: any) => {
			if (event.reason === "reload") return;
			const options = REFLECTS && name === "agent_end" ? ["reflect"] : [];
			noted = noted.then(() => call(name, ctx, "", options));
			ask((await noted).reflect);
		});
	}
	function ask(question: string | undefined) {
		if (!question) return;
		const message = { customType: "memd-reflect", content: question, display: true };
		pi.sendMessage(message, { triggerTurn: true, deliverAs: "followUp" });
	}
	if (REFLECTS)
		pi.registerTool({
			name: "memory_reflect",
			label: "Reflect",
			description:
				"Tell memd what lasts of this session: a title, at most 12 typed statements as verbatim quotes of the user " +
				"or of you, and what is unfinished. Use it once, when memd or the user asks for it. A short answer needs " +
				"the question before it as a quote of its own.",
			parameters: PARAMETERS,
			execute: (_id: string, given: any, _signal: any, _update: any, ctx: any) => reflect(given, ctx),
		});
	pi.registerCommand?.("memd:reflect", {
		description: "Tell memd what lasts of this session, as quotes",
		handler: async (_arguments: string, ctx: any) => {
			nameSession(ctx);
			ask(QUESTION);
		},
	});
}
