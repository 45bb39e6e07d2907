// The pointer: the wheel zooms, dragging moves or, with Shift, selects an interval; pointing says what a pass is or why there
// is a gap; a click selects a pass and follows its micro-batch.

const STILL = 4; // CSS pixels that a click may move

function listenToPointer(state, plot, kind) {
  const over = plot.over, listen = (name, act, options) => over.addEventListener(name, act, { ...options, signal: state.signal });
  const timeAt = (event) => plot.posToVal(event.clientX - over.getBoundingClientRect().left, "x");
  let drag = null;
  listen("wheel", (event) => {
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey)
      return move(state, ((state.view.to - state.view.from) * (event.deltaX || event.deltaY)) / over.clientWidth);
    return zoom(state, event.deltaY > 0 ? 1.25 : 0.8, timeAt(event));
  }, { passive: false });
  listen("pointerdown", (event) => {
    if (event.button) return;
    drag = { x: event.clientX, y: event.clientY, view: state.view, moved: false, since: event.shiftKey || state.selecting ? timeAt(event) : null };
    over.setPointerCapture(event.pointerId);
  });
  listen("pointermove", (event) => {
    if (!drag) return pointed(state, plot, kind, event, timeAt(event));
    const by = drag.x - event.clientX;
    if (Math.hypot(by, drag.y - event.clientY) > STILL) drag.moved = true;
    if (!drag.moved) return undefined;
    hideTip(state);
    if (drag.since !== null) return chooseInterval(state, drag.since, timeAt(event));
    const span = drag.view.to - drag.view.from, from = drag.view.from + (by / over.clientWidth) * span;
    return show(state, from, from + span);
  });
  listen("pointerup", (event) => {
    const clicked = drag && !drag.moved;
    drag = null;
    if (!clicked || kind !== "passes") return;
    const found = passAt(state, plot, event, timeAt(event));
    chooseInterval(state, null);
    select(state, found);
    follow(state, found ? state.data.rows[found.device].microbatch[found.index] : null);
  });
  listen("pointercancel", () => { drag = null; });
  listen("pointerleave", () => hideTip(state));
  listen("dblclick", () => showAll(state));
}

// The device under the pointer, and how far down its row the pointer is.
function rowAt(state, plot, event) {
  const box = plot.over.getBoundingClientRect(), y = ((event.clientY - box.top) / box.height) * state.data.devices;
  const device = Math.floor(y);
  return device >= 0 && device < state.data.devices ? { device, within: y - device } : null;
}

function passAt(state, plot, event, time) {
  const row = rowAt(state, plot, event);
  if (!row) return null;
  const holds = (style) => {
    const spot = state.places[style];
    return spot && row.within >= spot.top && row.within < spot.top + spot.height;
  };
  const boxes = state.data.rows[row.device], perUnit = plot.over.clientWidth / (state.view.to - state.view.from);
  const index = boxAt(boxes, time, holds, instantWidth(boxes, perUnit, 1) / 2 / perUnit);
  return index < 0 ? null : { device: row.device, index };
}

function pointed(state, plot, kind, event, time) {
  const row = rowAt(state, plot, event);
  const found = kind === "passes" ? passAt(state, plot, event, time) : null;
  if (found) showTip(state, passLines(state.data, found.device, found.index, rough(time)), event);
  else if (kind === "passes" && row && time >= 0 && gapLines(state.data, row.device, time)) showTip(state, gapLines(state.data, row.device, time), event);
  else if (kind === "memory" && row && time >= 0 && time <= state.data.end)
    showTip(state, [`Device ${row.device} ${memoryText(state.data, row.device, time)}`, `at ${withUnit(rough(time), state.data.document.unit)}`], event);
  else hideTip(state);
}

function showTip(state, lines, event) {
  const { tip } = state;
  tip.replaceChildren(...lines.map((line, n) => made(n ? "div" : "strong", line)));
  tip.hidden = false;
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  const below = event.clientY + 18;
  tip.style.top = (below + tip.offsetHeight < innerHeight ? below : Math.max(4, event.clientY - tip.offsetHeight - 10)) + "px";
}

function hideTip(state) {
  state.tip.hidden = true;
}
