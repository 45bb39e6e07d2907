// One solve of this tab: begun, watched as it goes, stopped; a reload goes on watching.

import { ask, Asked } from "./ask.js";
import * as course from "./history.js";
import { keep, kept } from "./memory.js";
import * as panes from "./panes.js";
import * as plan from "./plan.js";
import { problem } from "./problem.js";
import { byId, made, memoryRange, percent, say, withUnit } from "./words.js";

let targets = {}; // the runtimes that a problem or a plan can be solved for
let labels = null, now = null; // the labels of the problem in the form; the solve that is watched
let leaving = false; // a page that is left loses its connections, which says nothing of the solve
addEventListener("beforeunload", () => { leaving = true; });
addEventListener("pagehide", () => { leaving = true; });
addEventListener("pageshow", () => { leaving = false; });

export function build(limits, runtimes) {
  targets = runtimes;
  byId("seconds").max = limits.seconds;
  byId("workers").max = limits.workers;
  byId("seconds").value = Math.min(kept.seconds ?? 60, limits.seconds);
  byId("workers").value = Math.min(kept.workers ?? limits.workers, limits.workers);
  byId("solve").addEventListener("submit", (event) => {
    event.preventDefault();
    begin();
  });
  byId("stop").addEventListener("click", stop);
}

export function use(of, kind) {
  labels = of ?? labels;
  if (kind) offer(targets[kind]);
  buttons();
  if (now && labels) verdict();
}

export function resume() {
  if (kept.solve) watch(kept.solve.name, kept.solve.text, kept.solve.labels);
}

// The runtimes to choose from; the choice stays where it can.
function offer(names) {
  const menu = byId("target"), chosen = menu.value || kept.target;
  menu.replaceChildren(made("option", { value: "" }, "any runtime"), ...names.map((one) => made("option", { value: one }, one)));
  menu.value = names.includes(chosen) ? chosen : "";
}

function buttons() {
  const running = Boolean(now && !now.over);
  byId("begin").disabled = running || !problem.good;
  byId("stop").disabled = !running;
}

async function begin() {
  const seconds = byId("seconds").valueAsNumber, workers = byId("workers").valueAsNumber, text = problem.text;
  const target = byId("target").value;
  try {
    const { solve } = await ask("/api/solves", { text, seconds, workers, target: target || null, tab: kept.tab });
    keep({ seconds, workers, target, solve: { name: solve, text, labels } });
    panes.forget();
    watch(solve, text, labels);
  } catch (error) {
    if (!(error instanceof Asked)) throw error;
    say(error.mistakes.join(" "), true);
  }
}

async function stop() {
  byId("stop").disabled = true;
  now.stopping = true;
  verdict();
  try {
    await ask(`/api/solves/${now.name}/stop`, {});
  } catch (error) {
    if (error instanceof Asked) say(error.mistakes.join(" "), true);
  }
}

function watch(name, text, of) {
  now?.events.close();
  course.forget();
  const events = new EventSource(`/api/solves/${name}/events`);
  const solve = (now = { name, text, labels: of, events, over: false, history: [], moment: null, solution: null, said: "" });
  const on = (kind, act) => events.addEventListener(kind, (event) => {
    if (solve !== now) return;
    act(JSON.parse(event.data));
    verdict();
    buttons();
  });
  on("history", (history) => { solve.history = history; });
  on("queue", ({ place }) => { solve.said = `Waiting for its turn: place ${place} in the queue.`; });
  on("started", () => { solve.said = "Searching …"; });
  on("moment", (moment) => { moved(solve, moment); panes.says(facts(solve)); });
  on("chart", (chart) => panes.better(chart, facts(solve), solve.name));
  on("solution", (solution) => { solve.solution = solution; ended(solve); plan.show(solution, of); });
  on("failed", (why) => { solve.said = `The search ended: ${why}.`; ended(solve); });
  on("mistakes", (lines) => { solve.said = lines.join(" "); ended(solve); });
  events.addEventListener("error", () => {
    if (leaving || solve !== now || solve.over) return;
    if (events.readyState === EventSource.CLOSED) {
      solve.said = "This solve is not known any more: it ended a while ago, or the server was started anew.";
      ended(solve);
      keep({ solve: null });
    } else {
      solve.said = "The connection to the server is lost; trying again …";
    }
    verdict();
  });
  plan.show(null);
  buttons();
  verdict();
}

function ended(solve) {
  solve.over = true;
  solve.events.close();
  panes.says(facts(solve));
  buttons();
}

function moved(solve, moment) {
  const last = solve.history.at(-1);
  solve.moment = moment;
  if (last?.value !== moment.value || last?.bound !== moment.bound) solve.history.push(moment);
}

function facts(solve) {
  const { solution, moment, labels: of } = solve;
  if (!solution) return moment ? `${of.objective} ${withUnit(moment.value, of.timeUnit)} · gap ${percent(moment.gap)}` : "";
  const parts = [`${of.objective} ${withUnit(solution.value, of.timeUnit)}`, `idle ${percent(solution.idle?.[of.objective])} (mean)`,
    `bubble rate ${percent(solution.bubble?.[of.objective])} (busiest device)`];
  return [...parts, `peak memory ${memoryRange(solution.peak_memory)} ${of.memoryUnit}`].join(" · ");
}

// Figures, history and a sentence, as all is known at the moment.
function verdict() {
  if (!now) return;
  const { solution, moment, labels: of } = now, shown = solution ?? moment;
  const earlier = now.text === problem.text ? "" : " It is the solve of an earlier text of the problem.";
  const line = (solution ? sentence(solution, of) : now.stopping && !now.over ? "Stopping; what was found is kept." : now.said) + earlier;
  if (byId("verdict").textContent !== line) byId("verdict").textContent = line;
  byId("progress").hidden = !shown;
  if (!shown) return;
  byId("value").textContent = withUnit(shown.value, of.timeUnit);
  byId("bound").textContent = withUnit(shown.bound ?? shown.lower_bound, of.timeUnit);
  byId("gap").textContent = percent(shown.gap);
  byId("time").textContent = `${(solution?.wall_seconds ?? moment.seconds).toFixed(1)} s`;
  byId("phase").textContent = solution ? (solution.interrupted ? "stopped" : "ended") : moment.phase;
  byId("why").hidden = !solution?.certificate;
  byId("certificate").textContent = solution?.certificate?.text ?? "";
  course.draw(now.history, solution?.wall_seconds ?? moment.seconds, of);
}

function sentence(solution, of) {
  const value = `${of.objective} ${withUnit(solution.value, of.timeUnit)}`;
  const ended = solution.interrupted ? " It was stopped; this is the best found until then." : "";
  const notes = solution.notes.map((note) => ` Note: ${note}.`).join("");
  switch (solution.status) {
    case "optimal": return `Optimal: ${value}; no ${solution.choices ? "plan" : "schedule"}${solution.scope} is better.${notes}`;
    case "infeasible": return `Infeasible: ${solution.reason}`;
    case "unknown": return `No schedule was found in the time given.${ended}${notes}`;
    default: return `Best found: ${value}; none${solution.scope} is below ${withUnit(solution.lower_bound, of.timeUnit)}, a gap of ${percent(solution.gap)}.${ended}${notes}`;
  }
}
