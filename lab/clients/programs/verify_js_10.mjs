// `node verify_js_10.mjs`, in a folder that has @a2a-js/sdk 1.x, with `{"card": ..., "keys": [...]}` to read: does its verifier
// find a signature of the card that holds? Ends with 0 if so.
import { createRequire } from "node:module";
import process from "node:process";

const require = createRequire(`${process.cwd()}/`);
const { verifyAgentCardSignature } = require("@a2a-js/sdk");
const { importJWK } = require("jose");

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const { card, keys } = JSON.parse(Buffer.concat(chunks).toString());

const verify = verifyAgentCardSignature(async (kid) => {
  const key = keys.find((one) => one.kid === kid);
  if (!key) throw new Error(`no key ${kid}`);
  return importJWK(key, key.alg);
});
await verify(card);
