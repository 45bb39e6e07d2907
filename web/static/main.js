// The page: asks the server what there is, and ties form, text, table, charts and solve together.

import { ask, Asked } from "./ask.js";
import * as form from "./form.js";
import * as course from "./history.js";
import { keep, kept } from "./memory.js";
import * as panes from "./panes.js";
import * as problems from "./problem.js";
import { linkOf, textIn } from "./share.js";
import * as solves from "./solve.js";
import * as table from "./table.js";
import { makeTabs } from "./tabs.js";
import { makeTheme } from "./theme.js";
import { byId, handOver, made, say } from "./words.js";

makeTheme((name) => {
  panes.theme(name);
  course.theme(name);
});
makeTabs();
begin().catch((error) => {
  say(error instanceof Asked ? error.mistakes.join(" ") : `This page failed: ${error.message}`, true);
});

async function begin() {
  const start = await ask("/api/start");
  form.build(start.form, problems.typed);
  panes.build(start.formats);
  solves.build(start.limits, start.targets);
  table.listen(panes.choose);
  problems.listen(heard);
  makeExamples(start.examples);
  byId("share").addEventListener("click", share);
  byId("open").addEventListener("click", () => byId("file").click());
  byId("file").addEventListener("change", () => opened(start.limits.bytes));
  byId("save").addEventListener("click", () => handOver("problem.yaml", new Blob([problems.problem.text])));
  const { limits } = start;
  byId("footer").textContent =
    `pipesched ${start.version}. This server takes problems of up to ${limits.cells} stages times micro-batches, and solves of up to ` +
    `${limits.seconds} s with ${limits.workers} ${limits.workers === 1 ? "thread" : "threads"}, ${limits.solves} at once. Nothing you type is stored.`;
  problems.replace(await firstText(start, limits.bytes));
  window.addEventListener("hashchange", async () => {
    const text = await linked(limits.bytes);
    if (text !== null) problems.replace(text);
  });
  solves.resume();
}

// That of the link, unless this tab has gone on from it; else what the tab had; else the first example.
async function firstText(start, most) {
  const text = location.hash === kept.hash ? null : await linked(most);
  return text ?? problems.remembered() ?? start.examples[0].text;
}

async function linked(most) {
  keep({ hash: location.hash });
  try {
    return await textIn(location.hash, most);
  } catch (error) {
    say(error.message, true);
    return null;
  }
}

function makeExamples(examples) {
  const menu = byId("examples");
  menu.append(...examples.map((one) => made("option", { value: one.name, title: one.what }, one.name)));
  menu.addEventListener("change", () => {
    const one = examples.find((each) => each.name === menu.value);
    menu.value = "";
    if (one) problems.replace(one.text);
  });
}

function heard(kind, content) {
  if (kind === "typed") table.stale();
  else if (kind === "problem") { table.begin(content); solves.use(content, kind); }
  else if (kind === "plan") { table.leave(content); solves.use(content, kind); }
  else if (kind === "row" || kind === "bound") table.take(kind, content);
  else if (kind === "late") say(`Some schedules are missing: ${content}.`, true);
  else if (kind === "end") panes.refresh();
  if (kind === "problem" || kind === "plan") panes.labels(content);
  if (kind === "typed" || kind === "end") solves.use();
  if (kind === "problem" || kind === "plan" || kind === "end") date(true);
  else if (kind === "typed") date(false);
}

// The file chosen, in place of what is typed; it stays on this machine until it is asked about.
async function opened(most) {
  const menu = byId("file"), file = menu.files[0];
  if (!file) return;
  if (file.size > most) say(`${file.name}: found ${file.size} bytes; allowed: up to ${most}`, true);
  else problems.replace(await file.text());
  menu.value = ""; // the same file can be opened again
}

// Charts of another problem than the one typed are pale, and say so once the mistakes are known.
function date(known) {
  const good = problems.problem.good, drawn = document.querySelector("#charts .chart > *");
  byId("charts").classList.toggle("stale", !good);
  byId("outdated").textContent = known && !good && drawn ? "The charts are of the last problem without mistakes." : "";
}

async function share() {
  const link = await linkOf(problems.problem.text);
  history.replaceState(null, "", link);
  keep({ hash: location.hash });
  try {
    await navigator.clipboard.writeText(link);
    say("The link is copied; it holds the problem, and this server keeps nothing of it.");
  } catch {
    say("The link is in the address bar; it holds the problem, and this server keeps nothing of it.");
  }
}
