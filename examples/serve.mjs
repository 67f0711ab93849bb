// Serves the functions of a JavaScript module as webhooks: sync, finalize, customize. It needs only Node's standard library.
//
// node serve.mjs catset/hook.mjs --port 8080 calls sync(request) for POST /sync, and so on. Requests and responses are
// plain objects. An exception becomes status 500 with its text.

import { createServer } from "node:http";
import { resolve } from "node:path";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { host: { type: "string", default: "127.0.0.1" }, port: { type: "string", default: "8080" } },
});
const hooks = await import(resolve(positionals[0]));

async function body(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}

const server = createServer(async (request, response) => {
  const answer = (code, content) => {
    response.writeHead(code, { "Content-Type": "application/json" });
    response.end(JSON.stringify(content));
  };
  const hook = hooks[request.url.slice(1)];
  if (typeof hook !== "function") return answer(404, { error: `no hook at ${request.url}` });
  try {
    answer(200, hook(await body(request)));
  } catch (e) {
    answer(500, { error: String(e) }); // the engine shows the text on the parent
  }
});

process.on("SIGTERM", () => process.exit(0));
server.listen(Number(values.port), values.host, () => {
  console.log(`listening on http://${values.host}:${server.address().port}`);
});
