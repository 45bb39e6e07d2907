// The problem as it is typed: form and text kept in step by the server, which also answers with all schedules.

import { Asked, lines } from "./ask.js";
import * as form from "./form.js";
import { keep, kept } from "./memory.js";
import { byId, made } from "./words.js";

const PAUSE = 300; // milliseconds without typing until the server is asked
const edits = new Map(); // fields typed into since the server last answered
let waiting = 0, asking = null, heard = () => {};

export const problem = { text: "", good: false };

// `hear(kind, content)` is told all that becomes known; "begin" comes first, "end" last.
export function listen(hear) {
  heard = hear;
  byId("yaml").addEventListener("input", () => {
    problem.text = byId("yaml").value;
    soon();
  });
}

export function typed(path, value) {
  edits.set(path, value);
  soon();
}

export function replace(text) {
  edits.clear();
  document.activeElement?.blur?.();
  problem.text = byId("yaml").value = text;
  soon(0);
}

function soon(pause = PAUSE) {
  asking?.abort();
  clearTimeout(waiting);
  problem.good = false;
  keep({ text: problem.text });
  heard("typed");
  waiting = setTimeout(ask, pause);
}

async function ask() {
  const own = (asking = new AbortController()), sent = new Map(edits), mistakes = [];
  heard("begin");
  try {
    const body = { text: problem.text, edits: [...sent].map(([path, value]) => ({ path, typed: value })) };
    await lines("/api/compare", body, own.signal, (kind, content) => {
      if (kind === "text") take(content, sent);
      else if (kind === "form") form.fill(content, edits);
      else if (kind === "mistakes") mistakes.push(...content);
      else if (kind === "failed") mistakes.push(content);
      else if (kind === "problem" || kind === "plan") { problem.good = true; show([]); heard(kind, content); }
      else if (kind !== "end") heard(kind, content);
    });
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof Asked)) throw error;
    mistakes.push(...error.mistakes);
  }
  show(mistakes);
  if (mistakes.length) problem.good = false;
  heard("end");
}

// The text with the edits of the form in it.
function take(text, sent) {
  for (const [path, value] of sent) if (edits.get(path) === value) edits.delete(path);
  problem.text = byId("yaml").value = text;
  keep({ text });
}

// `times.forward: found ...` speaks of a field, `line 3, column 5: ...` of a place in the text.
function parts(line) {
  const text = line.replace(/^problem: /, ""), found = /^([a-z_]+(?:\.[a-z_]+){0,2})(?:[[.][^:]*)?: (.*)$/s.exec(text);
  const at = /^line (\d+), column (\d+): /.exec(text);
  return { path: found?.[1].replace(/^transfer/, "times.transfer") ?? null, text: found?.[2] ?? text, whole: text, line: at ? [Number(at[1]), Number(at[2])] : null };
}

function show(mistakes) {
  const all = mistakes.map(parts);
  form.mark(all);
  const list = made("ul", {}, ...all.map((one) => made("li", {}, ...linked(one))));
  byId("mistakes").replaceChildren(...(all.length ? [made("strong", {}, all.length === 1 ? "One mistake" : `${all.length} mistakes`), list] : []));
  byId("yaml").toggleAttribute("aria-invalid", all.length > 0);
}

function linked(one) {
  if (!one.line) return [one.whole];
  const button = made("button", { type: "button", class: "link" }, `Go to line ${one.line[0]}`);
  button.addEventListener("click", () => goTo(...one.line));
  return [one.whole, " ", button];
}

function goTo(line, column) {
  byId("tab-yaml").click();
  const area = byId("yaml"), before = area.value.split("\n").slice(0, line - 1).join("\n");
  const at = before.length + (line > 1 ? 1 : 0) + column - 1;
  area.focus();
  area.setSelectionRange(at, at);
}

export const remembered = () => kept.text ?? null;
