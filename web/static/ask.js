// Requests to the server; what it complains of is an `Asked` error with one line for each mistake.

export class Asked extends Error {
  constructor(mistakes) {
    super(mistakes.join("\n"));
    this.mistakes = mistakes;
  }
}

const GONE = "the server does not answer; is `pipesched serve` still running?";

async function answered(path, body, signal) {
  const options = body === undefined ? { signal } : {
    method: "POST", signal, headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Asked([GONE]);
  }
  if (!response.ok) {
    const found = await response.json().catch(() => ({}));
    throw new Asked(found.mistakes ?? [`the server refuses this (${response.status})`]);
  }
  return response;
}

export async function ask(path, body, signal) {
  return (await answered(path, body, signal)).json();
}

export async function file(body) {
  const response = await answered("/api/files", body);
  const name = /filename="([^"]*)"/.exec(response.headers.get("content-disposition") ?? "")?.[1] ?? "schedule";
  const notes = JSON.parse(response.headers.get("x-notes") ?? "[]");
  return { name, notes, content: await response.blob() };
}

// Calls `each(kind, content)` for every line of an answer as it comes.
export async function lines(path, body, signal, each) {
  const reader = (await answered(path, body, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    let part;
    try {
      part = await reader.read();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Asked([GONE]);
    }
    if (part.done) return;
    held += part.value;
    const whole = held.split("\n");
    held = whole.pop();
    for (const line of whole) for (const [kind, content] of Object.entries(JSON.parse(line))) each(kind, content);
  }
}
