// Server-sent events of a fetch (WHATWG HTML, section 9.2): EventSource can neither POST nor send headers.

/**
 * The frames of a body as they come: {id, event, data, comment}; `data` is null for comments alone.
 * Ends with the body; throws what the body throws when its connection is cut. What was not finished is not given.
 */
export async function* frames(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let [held, parts] = ["", []]; // of a frame that is not complete: the line ends at its end, and what is before
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (held + value).replaceAll("\r\n", "\n").split("\n\n");
      const last = blocks.pop();
      for (const block of blocks) {
        const raw = [...parts, block].join("");
        parts = [];
        if (raw) yield frame(raw);
      }
      [held] = /[\r\n]*$/.exec(last.slice(-2));
      parts.push(last.slice(0, last.length - held.length));
    }
  } finally {
    reader.cancel().catch(() => {}); // the connection is not needed any more
  }
}

function frame(raw) {
  const found = { id: null, event: "message", data: null, comment: "" };
  for (const line of raw.split("\n")) {
    const [name, value] = field(line);
    if (name === "") found.comment = value;
    else if (name === "data") found.data = found.data === null ? value : `${found.data}\n${value}`;
    else if (name === "id" || name === "event") found[name] = value;
  }
  return found;
}

function field(line) {
  const colon = line.indexOf(":");
  if (colon < 0) return [line, ""];
  const value = line.slice(colon + 1);
  return [line.slice(0, colon), value.startsWith(" ") ? value.slice(1) : value];
}
