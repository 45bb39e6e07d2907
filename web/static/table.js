// The table of published schedules, best first, with a small picture of each; it grows row by row.

import { byId, figure, made, memoryRange, percent } from "./words.js";
import { sketch } from "./sketch.js";

const OBJECTIVES = ["makespan", "span", "period"];
let rows = [], problem = null, bound = null, planned = 0, choose = () => {};

export const known = () => rows.filter((row) => row.status === "ok");
export const best = () => ordered().find((row) => row.fits) ?? known()[0] ?? null;
export const rowOf = (name) => rows.find((row) => row.schedule === name) ?? null;

// `chosen(name, pane)` is called when a schedule is to be shown.
export function listen(chosen) {
  choose = chosen;
}

export function begin(of) {
  problem = of;
  bound = null;
  rows = [];
  byId("table").hidden = false;
  byId("table").classList.remove("stale");
  later();
}

// A plan has no published schedules until a problem is chosen.
export function leave(plan) {
  problem = null;
  rows = [];
  byId("table").hidden = byId("others").hidden = true;
  byId("summary").textContent = [plan.sentence, ...plan.notes.map((note) => `Note: ${note}.`)].join(" ");
}

export function stale() {
  byId("table").classList.add("stale");
}

export function take(kind, content) {
  if (kind === "bound") bound = content; else rows.push(content);
  later();
}

function later() {
  planned ||= requestAnimationFrame(() => { planned = 0; draw(); });
}

function ordered() {
  const value = (row) => row.value ?? Infinity;
  return known().sort((a, b) => b.fits - a.fits || value(a) - value(b) || a.schedule.localeCompare(b.schedule));
}

const times = () => OBJECTIVES.filter((one) => one !== "period" || problem.objective === "period");

function draw() {
  if (!problem) return;
  const unit = problem.timeUnit ? `, ${problem.timeUnit}` : "";
  const heads = [
    "Schedule", "", ...times().map((one) => `${one}${unit}`), "Idle (mean over devices)", "Bubble rate (busiest device)", "Gap to bound", `Peak memory, ${problem.memoryUnit}`, "Fits",
  ];
  byId("table").tHead.rows[0].replaceChildren(...heads.map((head) => made("th", { scope: "col" }, head)));
  byId("table").tBodies[0].replaceChildren(...ordered().map(line));
  others();
  summary();
}

function line(row) {
  const show = made("button", { type: "button", class: "link", title: row.reference }, row.schedule);
  show.addEventListener("click", () => choose(row.schedule, 0));
  const beside = made("button", { type: "button", class: "small", "aria-label": `Compare with ${row.schedule}` }, "compare");
  beside.addEventListener("click", () => choose(row.schedule, 1));
  const picture = made("td", { class: "picture" });
  if (row.chart) picture.append(row.picture ??= sketch(row.chart));
  const goal = (one) => (one === problem.objective ? "goal number" : "number");
  const cells = [
    made("th", { scope: "row" }, show, " ", beside), picture,
    ...times().map((one) => made("td", { class: goal(one) }, figure(row[one]))),
    made("td", { class: "number" }, percent(row.idle?.[problem.objective])),
    made("td", { class: "number" }, percent(row.bubble?.[problem.objective])),
    made("td", { class: "number" }, row.fits ? percent(row.gap) : ""),
    made("td", { class: "number" }, memoryRange(row.peak_memory)),
    made("td", { class: "fits" }, row.fits ? "yes" : made("span", { class: "no" }, `no: ${row.reason}`)),
  ];
  return made("tr", row.fits ? {} : { class: "unfit" }, ...cells);
}

function others() {
  const reasons = new Map();
  for (const row of rows) if (row.status !== "ok") reasons.set(row.reason, [...(reasons.get(row.reason) ?? []), row.schedule]);
  const count = rows.length - known().length, box = byId("others");
  box.hidden = !count;
  box.querySelector("summary").textContent = `${count} published schedules do not apply to this problem: why`;
  const items = [...reasons].map(([reason, names]) => made("li", {}, made("strong", {}, names.join(", ")), `: ${reason}`));
  box.querySelector("ul").replaceChildren(...items);
}

function summary() {
  const fit = known().filter((row) => row.fits).length, first = best();
  const parts = [];
  if (bound?.infeasible) parts.push(`No schedule keeps all rules: ${bound.infeasible}`);
  else if (bound) parts.push(`No schedule has a ${problem.objective} below ${figure(bound.value)} ${problem.timeUnit}.`.replace(" .", "."));
  if (rows.length) parts.push(`${fit} of ${rows.length} published schedules apply and fit${first?.fits ? `; the best is ${first.schedule}` : ""}.`);
  parts.push(...problem.notes.map((note) => `Note: ${note}.`));
  byId("summary").textContent = parts.join(" ");
}
