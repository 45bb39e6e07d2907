// The keys of the chart, while it has the focus.

function listenToKeys(state, element) {
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = keys(state)[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }, { signal: state.signal });
}

function keys(state) {
  const { from, to } = state.view, span = to - from, chosen = state.selected;
  const row = chosen && state.data.rows[chosen.device];
  const middle = row && row.start[chosen.index] >= from && row.end[chosen.index] <= to ? row.start[chosen.index] : (from + to) / 2;
  return {
    ArrowLeft: () => move(state, -span / 5),
    ArrowRight: () => move(state, span / 5),
    "+": () => zoom(state, 0.6, middle),
    "=": () => zoom(state, 0.6, middle),
    "-": () => zoom(state, 1 / 0.6, middle),
    0: () => showAll(state),
    n: () => selectNext(state, 1),
    p: () => selectNext(state, -1),
    ArrowUp: () => selectDevice(state, -1),
    ArrowDown: () => selectDevice(state, 1),
    i: () => chosen && chooseInterval(state, row.start[chosen.index], row.end[chosen.index]),
    Enter: () => chosen && follow(state, row.microbatch[chosen.index]),
    c: () => showCriticalPath(state, !state.criticalShown),
    s: () => state.data.document.lanes.length > 1 && showStreams(state, !state.streams),
    Escape: () => {
      chooseInterval(state, null);
      select(state, null);
      follow(state, null);
    },
  };
}
