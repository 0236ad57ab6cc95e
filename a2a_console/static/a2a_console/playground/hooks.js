// A webhook of this page: the host sends notifications to an address of its own, which this page reads, verifies and shows.

import { folded, make, pretty } from "./dom.js";

const EVERY = 1500;
const TOLERANCE = 300;

/** A secret of Standard Webhooks, made here: the host signs with it when it is registered as the token. */
export function secret() {
  return `whsec_${encoded(crypto.getRandomValues(new Uint8Array(32)))}`;
}

const encoded = (bytes) => btoa(String.fromCharCode(...bytes));
const decoded = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** Verify a signature: [good, words]. `key` null: the dialect has no member for a token, so the key is the host's. */
export async function verified({ headers, body }, key) {
  const signatures = (headers["webhook-signature"] ?? "").split(" ").filter((one) => one.startsWith("v1,"));
  if (!signatures.length) return [false, "not signed"];
  if (!key) return [null, "signed with the host's key for this receiver, which this page does not have"];
  if (!crypto.subtle) return [null, "signed; browsers verify on https and localhost only"];
  const expected = await mac(key, `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`);
  if (!signatures.includes(`v1,${expected}`)) return [false, "the signature does NOT fit"];
  const old = Math.abs(Date.now() / 1000 - Number(headers["webhook-timestamp"])) > TOLERANCE;
  return old ? [false, "the signature fits, but is too old"] : [true, "signature verified"];
}

async function mac(key, text) {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const read = await crypto.subtle.importKey("raw", decoded(key.replace("whsec_", "")), algorithm, false, ["sign"]);
  return encoded(new Uint8Array(await crypto.subtle.sign("HMAC", read, new TextEncoder().encode(text))));
}

/** Watches one address, and adds its deliveries to a list. */
export class Hook {
  #seen = 0;
  #timer = 0;

  constructor({ url, read, key, list, notify }) {
    Object.assign(this, { url, read, key, list, notify });
  }

  start() {
    this.#timer = setInterval(() => this.#look().catch((fault) => this.notify(`The receiver cannot be read: ${fault.message}`)), EVERY);
  }

  stop() {
    clearInterval(this.#timer);
  }

  async #look() {
    const answer = await fetch(`${this.read}?after=${this.#seen}`, { credentials: "omit", cache: "no-store" });
    if (answer.status === 404) {
      this.stop();
      this.notify("This address is too old and receives no more. Switch the webhook off and on for another.");
      return;
    }
    for (const one of (await answer.json()).deliveries) {
      this.#seen = Math.max(this.#seen, one.number);
      this.list.append(await this.#shown(one));
    }
  }

  async #shown(one) {
    const [good, words] = await verified(one, this.key);
    const kind = good === null ? "" : good ? "pg-good" : "pg-bad";
    const headers = Object.entries(one.headers).map(([name, value]) => `${name}: ${name.includes("token") || name === "authorization" ? "••••" : value}`);
    return make("li", { class: "pg-exchange" },
      make("p", { class: "pg-line" }, make("strong", {}, one.headers["webhook-id"] ?? "no webhook-id"), " ", make("span", { class: kind }, words)),
      folded("Headers", headers.join("\n")),
      make("pre", { tabindex: 0, "aria-label": "Body of the notification" }, pretty(one.body)));
  }
}
