// A client of the Agent Client Protocol, by its TypeScript SDK:
//   node acp_client.mjs SDK-URL TASK
// TASK is {"command": [...], "cwd": ..., "prompts": [...], "option": ..., "load": ...}.
// It prints {"sessionId", "updates", "asked", "stopReasons"}.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

const [sdk, taskText] = process.argv.slice(2);
const acp = await import(sdk);
const task = JSON.parse(taskText);

const child = spawn(task.command[0], task.command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((resolve) => child.on("exit", (code, signal) => resolve(signal ?? code)));
const result = { sessionId: task.load ?? "", updates: [], asked: [], stopReasons: [] };

await acp
  .client({ name: "acceptance" })
  .onNotification(acp.methods.client.session.update, ({ params }) => {
    result.updates.push(params.update);
  })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    result.asked.push(params);
    const option = params.options.find((o) => o.kind === task.option);
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  })
  .connectWith(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)), async (agent) => {
    const hello = await agent.request(acp.methods.agent.initialize, {
      protocolVersion: 1,
      clientCapabilities: {},
      clientInfo: { name: "acceptance", version: "1" },
    });
    if (hello.protocolVersion !== 1) throw new Error(`version ${hello.protocolVersion}`);
    const open = { cwd: task.cwd, mcpServers: [] };
    if (task.load) await agent.request(acp.methods.agent.session.load, { ...open, sessionId: task.load });
    else result.sessionId = (await agent.request(acp.methods.agent.session.new, open)).sessionId;
    if (task.mode) await agent.request(acp.methods.agent.session.setMode, { sessionId: result.sessionId, modeId: task.mode });
    for (const text of task.prompts) {
      const answer = await agent.request(acp.methods.agent.session.prompt, {
        sessionId: result.sessionId,
        prompt: [{ type: "text", text }],
      });
      result.stopReasons.push(answer.stopReason);
    }
  });

child.stdin.end();
result.exit = await ended;
console.log(JSON.stringify(result));
