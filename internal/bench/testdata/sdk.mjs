// A prompt by the SDK of a vendor, which starts the CLI:
//   node sdk.mjs RUNTIME SDK-URL CLI MODEL PROMPT [ARGUMENT...]
// The arguments are those that make the CLI use another model server. It prints the answer.
const [runtime, url, cli, model, prompt, ...args] = process.argv.slice(2);
const sdk = await import(url);

const ask = {
  async codex() {
    const provider = Object.fromEntries(
      [...args.join(" ").matchAll(/(\w+)=("[^"]*"|\d+)/g)].map(([, name, value]) => [name, JSON.parse(value)]),
    );
    const config = { model_provider: provider.name, model_providers: { [provider.name]: provider } };
    const thread = new sdk.Codex({ codexPathOverride: cli, config }).startThread({ model });
    return (await thread.run(prompt)).finalResponse;
  },
  async claude() {
    let answer = "";
    for await (const message of sdk.query({ prompt, options: { pathToClaudeCodeExecutable: cli, model } })) {
      if (message.type === "result") answer = message.result;
    }
    return answer;
  },
};
console.log(await ask[runtime]());
