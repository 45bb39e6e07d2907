// What is selected, followed and lit, and what the chart then says.

function select(state, found) {
  state.selected = found;
  if (found) {
    const row = state.data.rows[found.device];
    reveal(state, row.start[found.index], row.end[found.index]);
    state.said.textContent = passLines(state.data, found.device, found.index, row.start[found.index]).join(" · ");
  } else {
    state.said.textContent = "";
  }
  redraw(state);
}

function follow(state, microbatch) {
  state.followed = microbatch;
  refreshControls(state);
  redraw(state);
}

function showCriticalPath(state, shown) {
  state.criticalShown = shown;
  refreshControls(state);
  redraw(state);
}

function showStreams(state, shown) {
  state.streams = shown;
  layOut(state);
  refreshControls(state);
}

// The next pass of the selected one's device, or the one before; with none selected the first that is shown.
function selectNext(state, by) {
  const device = state.selected?.device ?? 0, row = state.data.rows[device];
  let index = state.selected ? state.selected.index + by : firstAbove(row.start, state.view.from - 1e-12);
  while (index >= 0 && index < row.count && !state.places[row.style[index]]) index += by;
  if (index >= 0 && index < row.count) select(state, { device, index });
}

// The pass of the device above or below that is nearest in time.
function selectDevice(state, by) {
  if (!state.selected) return selectNext(state, 1);
  const { device, index } = state.selected, to = device + by, time = state.data.rows[device].start[index];
  if (to < 0 || to >= state.data.devices || !state.data.rows[to].count) return undefined;
  const row = state.data.rows[to];
  let near = Math.max(0, firstAbove(row.start, time) - 1);
  while (near < row.count - 1 && !state.places[row.style[near]]) near++;
  return select(state, { device: to, index: near });
}
