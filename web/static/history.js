// How best value and lower bound of a search come together: the chart, and a line that says it in words.

import { byId, figure, withUnit } from "./words.js";

let drawn = null;

// Another search is looked at: its value may be of another objective and unit.
export function forget() {
  drawn?.destroy();
  drawn = null;
}

export const theme = (name) => drawn?.theme(name);

export function draw(history, seconds, { objective, timeUnit: unit }) {
  const known = history.filter((one) => one.value !== null), box = byId("history-figure");
  box.hidden = !known.some((one) => one.value > one.bound);
  if (box.hidden) return;
  const end = Math.max(seconds, known.at(-1).seconds, 0.1), last = history.at(-1);
  drawn ??= pipesched.course(byId("history"), { what: objective, unit: unit ?? "", height: 190, theme: document.documentElement.dataset.theme });
  drawn.update(history.map((one) => [one.seconds, one.value, one.bound]), end);
  byId("history-text").textContent =
    `0 to ${figure(end)} s: best value from ${withUnit(known[0].value, unit)} to ${withUnit(last.value, unit)}, ` +
    `lower bound at ${withUnit(last.bound, unit)}`;
}
