// The part of time that is shown: zooming and moving it, alike in all charts of a group.

const groups = new Map(); // the name of a group, and the charts that share what they show
const CLOSEST = 1e-6; // of all time: how far one can zoom in

function wholeOf(state) {
  const peers = state.group ? groups.get(state.group) : [state];
  return Math.max(1e-9, ...[...peers].map((one) => one.data.end));
}

function join(state) {
  if (!state.group) return;
  if (!groups.has(state.group)) groups.set(state.group, new Set());
  groups.get(state.group).add(state);
}

function leave(state) {
  if (!state.group) return;
  groups.get(state.group).delete(state);
  if (!groups.get(state.group).size) groups.delete(state.group);
}

function show(state, from, to) {
  const whole = wholeOf(state), span = Math.min(whole, Math.max(to - from, whole * CLOSEST));
  const begin = Math.max(0, Math.min(from, whole - span));
  for (const one of state.group ? groups.get(state.group) : [state]) {
    one.view = { from: begin, to: begin + span };
    redraw(one);
  }
}

const showAll = (state) => show(state, 0, wholeOf(state));

const showsAll = (state) => state.view.to - state.view.from >= wholeOf(state) * (1 - 1e-9);

function zoom(state, factor, at) {
  const { from, to } = state.view;
  show(state, at - (at - from) * factor, at + (to - at) * factor);
}

function move(state, by) {
  const { from, to } = state.view, whole = wholeOf(state), begin = Math.max(0, Math.min(from + by, whole - (to - from)));
  show(state, begin, begin + (to - from));
}

// Bring a time into view, if it is not.
function reveal(state, start, end) {
  const { from, to } = state.view, span = to - from;
  if (start >= from && end <= to) return;
  const begin = (start + end - span) / 2;
  show(state, begin, begin + span);
}

// Draw in the next frame, once however often it is asked for.
function redraw(state) {
  if (state.frame) return;
  state.frame = requestAnimationFrame(() => {
    state.frame = 0;
    for (const plot of state.plots) plot.setScale("x", { min: state.view.from, max: state.view.to });
  });
}
