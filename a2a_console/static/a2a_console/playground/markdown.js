// Markdown of agents: markdown-it renders it without HTML, DOMPurify passes a list of elements, and pictures stay links.

import "../vendor/markdown-it-15.0.3.min.js";
import "../vendor/purify-3.5.0.min.js";
import { make, soon } from "./dom.js";

/** Characters that are rendered at once; of one block, and of a text, from which the rest is plain; of which no more is shown. */
const [SLICE, BLOCK, RENDERED, LARGEST] = [20_000, 16_000, 150_000, 1_000_000];
const SECTION = 8_000; // characters of a long block that are laid out together
const TAGS = ["p", "br", "strong", "em", "s", "code", "pre", "ul", "ol", "li", "blockquote", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td", "a", "hr"];
const PASSED = { ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ["href", "start", "align", "rel", "target"], ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false, RETURN_DOM_FRAGMENT: true };

const markdown = globalThis.markdownit({ linkify: true, breaks: true }).disable("image");
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
markdown.core.ruler.push("of-this-page", ({ tokens }) => {
  for (const token of tokens) {
    if (token.type.startsWith("heading_")) token.tag = `h${Math.min(6, Number(token.tag[1]) + 3)}`; // below the headings of the page
    const side = /text-align:(\w+)/.exec(token.attrGet("style") ?? "")?.[1];
    token.attrs = side ? [["align", side]] : token.attrs; // the policy forbids styles
  }
});
markdown.renderer.rules.link_open = (tokens, index, ...more) => {
  tokens[index].attrs.push(["rel", "noopener noreferrer nofollow"], ["target", "_blank"]);
  return more.at(-1).renderToken(tokens, index, more[0]);
};

const rendered = (text) => globalThis.DOMPurify.sanitize(markdown.render(text), PASSED);

/** A text that grows. What can no longer change is rendered once, the last block at each frame of the screen. */
export class Prose {
  #tail = ""; // Markdown of the last block
  #live = make("div");
  #plain = null; // the end of a long block, as a text node
  #waits = false;
  #size = 0;
  #settled = 0;

  constructor(text) {
    this.node = make("div", { class: "pg-text" }, this.#live);
    this.#take(text);
    this.#render();
  }

  write(text) {
    this.#take(text);
    this.#wait();
  }

  #wait() {
    if (!this.#waits) soon(() => this.#render());
    this.#waits = true;
  }

  /** Return the text that is shown. */
  get text() {
    if (this.#waits) this.#render();
    return this.node.textContent;
  }

  #take(text) {
    const room = Math.max(LARGEST - this.#size, 0);
    this.#tail += text.slice(0, room);
    if (this.#size <= LARGEST && text.length > room) this.#tail += "\n\n(The rest is not shown.)";
    this.#size += text.length;
  }

  #render() {
    this.#waits = false;
    if (this.#plain) return this.#renderPlain();
    const end = this.#tail.length > SLICE ? this.#tail.lastIndexOf("\n", SLICE) + 1 || SLICE : SLICE;
    const later = this.#tail.slice(end);
    this.#tail = this.#tail.slice(0, end);
    this.#settle();
    const long = this.#tail.length > BLOCK || this.#settled > RENDERED;
    if (!long) this.#live.replaceChildren(rendered(this.#tail));
    this.#tail += later;
    if (long) return this.#renderPlain();
    return later ? this.#wait() : undefined;
  }

  /** Put all blocks but the last before the live one. */
  #settle() {
    const last = markdown.parse(this.#tail, {}).findLast((token) => token.level === 0 && token.map)?.map[0];
    if (!last) return;
    const lines = this.#tail.split("\n");
    const settled = lines.slice(0, last).join("\n");
    this.#live.before(make("div", { class: "pg-settled" }, rendered(settled)));
    this.#tail = lines.slice(last).join("\n");
    this.#settled += settled.length;
  }

  /** Add to a long block in sections, so that a new line does not lay out all lines before it again. */
  #renderPlain() {
    if (!this.#plain) this.#live.replaceChildren();
    while (this.#tail) {
      const room = SECTION - (this.#plain?.length ?? SECTION);
      if (room <= 0) {
        this.#plain = document.createTextNode("");
        this.#live.append(make("p", { class: "pg-plain pg-settled" }, this.#plain));
        continue;
      }
      const space = this.#tail.length > room ? Math.max(this.#tail.lastIndexOf("\n", room), this.#tail.lastIndexOf(" ", room)) : -1;
      const piece = this.#tail.slice(0, space < 0 ? room : space + 1);
      this.#plain.appendData(piece);
      this.#tail = this.#tail.slice(piece.length);
      if (space >= 0) this.#plain = { length: SECTION };
    }
  }
}
