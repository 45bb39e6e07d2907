// Best value and lower bound over the time of a search, as two stepped lines.

import { byId, figure, withUnit } from "./words.js";

const WIDE = 600, HIGH = 130, ROOM = 8;
const SVG = "http://www.w3.org/2000/svg";

export function draw(history, seconds, unit) {
  const known = history.filter((one) => one.value !== null), box = byId("history-figure");
  box.hidden = !known.some((one) => one.value > one.bound);
  if (box.hidden) return;
  const values = known.map((one) => one.value), low = Math.min(...history.map((one) => one.bound).filter((b) => b > 0), ...values);
  const high = Math.max(...values), span = high - low || Math.abs(high) || 1, end = Math.max(seconds, known.at(-1).seconds, 0.1);
  const x = (time) => ROOM + (time / end) * (WIDE - 2 * ROOM);
  const y = (value) => HIGH - ROOM - (Math.max(value - low, 0) / span) * (HIGH - 2 * ROOM);
  byId("history").replaceChildren(
    path("bound", history.filter((one) => one.bound >= low), (one) => one.bound),
    path("value", known, (one) => one.value),
  );
  const last = history.at(-1);
  byId("history-text").textContent =
    `0 to ${figure(end)} s: best value (solid) from ${withUnit(known[0].value, unit)} to ${withUnit(last.value, unit)}, ` +
    `lower bound (dashed) at ${withUnit(last.bound, unit)}`;

  function path(kind, moments, of) {
    let d = "";
    moments.forEach((one, n) => { d += n ? `H${x(one.seconds).toFixed(1)}V${y(of(one)).toFixed(1)}` : `M${x(one.seconds).toFixed(1)} ${y(of(one)).toFixed(1)}`; });
    const line = document.createElementNS(SVG, "path");
    line.setAttribute("d", d ? `${d}H${x(end).toFixed(1)}` : "");
    line.setAttribute("class", kind);
    return line;
  }
}
