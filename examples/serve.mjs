// Serves the functions of a JavaScript module as webhooks: sync, finalize, customize. It needs only Node's standard library.
//
// node serve.mjs catset/hook.mjs --port 8080 calls sync(request) for POST /sync, and so on. Requests and responses are
// plain objects. An exception becomes status 500 with its text.

import { createServer } from "node:http";
import { resolve } from "node:path";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { host: { type: "string", default: "127.0.0.1" }, port: { type: "string", default: process.env.PORT ?? "8080" } },
});
const hooks = await import(resolve(positionals[0]));

// A number of JavaScript has 53 bits. Larger integers reach the function as marked texts, and leave as integers.
const token = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const large = (text) => /^-?\d{16,}$/.test(text) && !Number.isSafeInteger(Number(text));
const parse = (json) => JSON.parse(json.replace(token, (text) => (large(text) ? `"\\u0000${text}"` : text)));
const print = (value) => JSON.stringify(value).replace(/"\\u0000(-?\d+)"/g, "$1");

async function body(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return parse(Buffer.concat(chunks).toString());
}

const server = createServer(async (request, response) => {
  const answer = (code, content) => {
    response.writeHead(code, { "Content-Type": "application/json" });
    response.end(print(content));
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
