// A link that holds the problem: its text, compressed, after the `#`, which browsers never send to a server.

const PREFIX = "#p=";

export async function linkOf(text) {
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  const safe = btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return location.origin + location.pathname + PREFIX + safe;
}

// The text in the page's address; null where there is none. What is no such text, or too long, is an error.
export async function textIn(hash, most) {
  if (!hash.startsWith(PREFIX)) return null;
  const damaged = new Error("the link is damaged: no problem can be read from it");
  let bytes;
  try {
    bytes = Uint8Array.from(atob(hash.slice(PREFIX.length).replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  } catch {
    throw damaged;
  }
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const part = await reader.read().catch(() => { throw damaged; });
    if (part.done) break;
    size += part.value.length;
    if (size > most) throw new Error(`the link holds more than ${most} bytes; allowed: up to so many`);
    parts.push(part.value);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await new Blob(parts).arrayBuffer());
  } catch {
    throw damaged;
  }
}
