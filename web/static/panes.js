// Two charts, one above the other on one time axis; each shows a published schedule or the best one found.

import { ask, Asked, file } from "./ask.js";
import { problem } from "./problem.js";
import * as table from "./table.js";
import { keep, kept } from "./memory.js";
import { byId, handOver, made, memoryRange, percent, say, withUnit } from "./words.js";

export const OURS = "pipesched";
const NONE = "";
const found = { chart: null, facts: "", solve: null }; // what the solve has found
let unit = null; // the problem's labels and objective

const panes = [0, 1].map((number) => {
  const root = byId(`pane-${number}`);
  return {
    number, root, which: root.querySelector(".which"), facts: root.querySelector(".facts"), format: root.querySelector(".format"),
    get: root.querySelector(".get"), place: root.querySelector(".chart"), chart: null, name: NONE, shown: null, asking: null,
  };
});

export function build(formats) {
  for (const pane of panes) {
    for (const [group, members] of grouped(formats)) {
      pane.format.append(made("optgroup", { label: group }, ...members.map((one) => made("option", { value: one.name, title: one.what }, one.name))));
    }
    pane.get.addEventListener("click", () => download(pane));
    pane.which.addEventListener("change", () => choose(pane.which.value, pane.number));
  }
  const names = kept.panes ?? [NONE, NONE];
  panes.forEach((pane, n) => { pane.name = names[n]; });
}

function grouped(formats) {
  const groups = new Map();
  for (const one of formats) groups.set(one.group, [...(groups.get(one.group) ?? []), one]);
  return groups;
}

export function choose(name, number) {
  panes[number].name = name;
  keep({ panes: panes.map((pane) => pane.name) });
  show(panes[number]);
  panes[number].root.scrollIntoView({ block: "nearest" });
}

// The labels and the objective of the problem in the form.
export function labels(of) {
  unit = of;
}

// What the best schedule found is said to be.
export function says(facts) {
  found.facts = facts;
  for (const pane of panes) if (pane.name === OURS) pane.facts.textContent = facts;
}

// The names that can be chosen have changed.
export function refresh() {
  if (!unit) return;
  const names = [...(found.chart ? [OURS] : []), ...table.known().map((row) => row.schedule)];
  for (const pane of panes) {
    if (pane.number === 0 && !names.includes(pane.name) && names.length) pane.name = found.chart ? OURS : table.best().schedule;
    if (pane.number === 1 && !names.includes(pane.name)) pane.name = NONE;
    const options = names.map((name) => made("option", { value: name }, name === OURS ? "best found (pipesched)" : name));
    if (pane.number === 1) options.unshift(made("option", { value: NONE }, "nothing"));
    pane.which.replaceChildren(...options);
    show(pane);
  }
}

// The search has found a better schedule; the first one takes the upper chart, and the best published one the lower.
export function better(chart, facts, solve) {
  const first = !found.chart;
  Object.assign(found, { chart, facts: facts ?? found.facts, solve });
  if (first) {
    const best = table.best();
    panes[0].name = OURS;
    if (panes[1].name === NONE && best) panes[1].name = best.schedule;
    keep({ panes: panes.map((pane) => pane.name) });
  }
  refresh();
}

export function forget() {
  Object.assign(found, { chart: null, facts: "", solve: null });
  refresh();
}

async function show(pane) {
  pane.which.value = pane.name;
  pane.asking?.abort();
  const row = table.rowOf(pane.name);
  pane.facts.textContent = pane.name === OURS ? found.facts : row ? factsOf(row) : "";
  pane.root.querySelector(".download").hidden = pane.name === NONE;
  if (pane.name === OURS) return draw(pane, found.chart);
  if (!row || row.status !== "ok") return draw(pane, null);
  if (row.chart) return draw(pane, row.chart);
  pane.asking = new AbortController();
  try {
    row.chart = await ask("/api/chart", { text: problem.text, schedule: pane.name }, pane.asking.signal);
    draw(pane, row.chart);
  } catch (error) {
    if (error instanceof Asked) say(error.mistakes.join(" "), true);
    else if (error.name !== "AbortError") throw error;
  }
}

function factsOf(row) {
  const parts = [`${unit.objective} ${withUnit(row[unit.objective], unit.timeUnit)}`, `idle ${percent(row.idle?.[unit.objective])} (mean)`,
    `bubble rate ${percent(row.bubble?.[unit.objective])} (busiest device)`];
  parts.push(`peak memory ${memoryRange(row.peak_memory)} ${unit.memoryUnit}`);
  return parts.join(" · ") + (row.fits ? "" : " · does not fit");
}

function draw(pane, chart) {
  if (pane.shown === chart) return;
  pane.shown = chart;
  if (!chart) {
    pane.chart?.destroy();
    pane.chart = null;
  } else if (pane.chart) {
    pane.chart.update(chart);
  } else {
    pane.chart = pipesched.chart(pane.place, chart, { group: "compare", theme: document.documentElement.dataset.theme ?? "auto" });
  }
}

export function theme(name) {
  for (const pane of panes) pane.chart?.theme(name);
}

async function download(pane) {
  pane.get.disabled = true;
  try {
    const of = pane.name === OURS ? { solve: found.solve } : { text: problem.text, schedule: pane.name };
    const { name, notes, content } = await file({ ...of, format: pane.format.value });
    handOver(name, content);
    say([`${name} is downloaded.`, ...notes].join(" "));
  } catch (error) {
    if (!(error instanceof Asked)) throw error;
    say(error.mistakes.join(" "), true);
  } finally {
    pane.get.disabled = false;
  }
}
