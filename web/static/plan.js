// What the search for a plan brought: every placement, the stages of the best, settings of runtimes, and the way on.

import * as problems from "./problem.js";
import { byId, figure, handOver, made, withUnit } from "./words.js";

export function show(solution, labels) {
  const box = byId("plan");
  box.hidden = !solution?.choices;
  if (box.hidden) return box.replaceChildren();
  const parts = [placements(solution, labels)];
  if (solution.problem_text) {
    const on = made("button", { type: "button", id: "go-on" }, "Open the chosen problem");
    on.addEventListener("click", () => problems.replace(solution.problem_text));
    const what = "Its published schedules can then be compared with the plan's own order, and it can be edited and solved.";
    parts.unshift(made("p", {}, on, ` ${what}`));
    parts.push(stages(solution), settings(solution));
  }
  box.replaceChildren(...parts);
}

function table(caption, heads, rows) {
  const head = made("thead", {}, made("tr", {}, ...heads.map((one) => made("th", { scope: "col" }, one))));
  const body = made("tbody", {}, ...rows.map((cells) => made("tr", {}, ...cells.map((cell) => made("td", {}, cell)))));
  return made("table", { class: "plain" }, made("caption", {}, caption), head, body);
}

function placements(solution, labels) {
  const row = (one) => [
    one.named, withUnit(one.value, labels.timeUnit), withUnit(one.lower_bound, labels.timeUnit), one.reason ?? one.status,
    (one.partition ?? []).join(", "),
  ];
  return table("Placements", ["Placement", labels.objective, "None is below", "", "Layers of each stage"], solution.choices.map(row));
}

function stages(solution) {
  const again = (one) => Object.entries(one.recomputed).map(([way, count]) => `${figure(count)} ${way}`).join(", ") || "nothing";
  const rows = solution.stages.map((one) => [String(one.stage), String(one.device), one.layers, again(one)]);
  return made("details", {}, made("summary", {}, "Stages of the best plan"), table("", ["Stage", "Device", "Layers", "Recomputed"], rows));
}

function save(name, text) {
  const button = made("button", { type: "button" }, "Save");
  button.addEventListener("click", () => handOver(`partition.${name}.txt`, new Blob([text])));
  return button;
}

function settings(solution) {
  const one = ({ name, refusal, text }) =>
    made("details", {}, made("summary", {}, refusal ? `${name}: not this plan` : name), ...(refusal ? [made("p", {}, refusal)] : []), ...(text ? [save(name, text), made("pre", {}, text)] : []));
  return made("details", {}, made("summary", {}, "Settings of runtimes"), ...solution.settings_texts.map(one));
}
