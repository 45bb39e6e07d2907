// The chart itself: what `pipesched.chart(element, document, options)` makes, and what one can do with it.

// Options, none needed: `theme` ("auto", "light", "dark"), `group` (charts of one name show the same part of time),
// `controls` (false: none), `streams`, `criticalPath` (whether shown at first).
function chart(element, document, options = {}) {
  const stop = new AbortController();
  const state = {
    signal: stop.signal, group: options.group ?? null, followed: null, selected: null, interval: null, selecting: false, frame: 0, plots: [],
    streams: options.streams ?? true, criticalShown: options.criticalPath ?? false, asked: options.theme ?? "auto",
  };
  build(state, element, options);
  state.data = decoded(document);
  join(state);
  state.view = { from: 0, to: wholeOf(state) };
  applyTheme(state);
  taken(state);
  state.plots = makePlots(state, state.canvases);
  state.plots.forEach((plot, n) => listenToPointer(state, plot, n ? "memory" : "passes"));
  listenToKeys(state, state.canvases);
  redraw(state);
  if (state.group) showAll(state);
  const sizes = new ResizeObserver(() => fit(state));
  sizes.observe(state.canvases);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme(state, state.asked), { signal: stop.signal });
  return {
    update: (next) => update(state, next),
    follow: (microbatch) => follow(state, microbatch),
    showStreams: (shown) => showStreams(state, shown),
    showCriticalPath: (shown) => showCriticalPath(state, shown),
    theme: (name) => theme(state, name),
    show: (from, to) => show(state, from, to),
    view: () => ({ ...state.view }),
    selected: () => state.selected && passName(state.data, state.selected.device, state.selected.index),
    destroy() {
      sizes.disconnect();
      stop.abort();
      leave(state);
      if (state.frame) cancelAnimationFrame(state.frame);
      for (const plot of state.plots) plot.destroy();
      state.root.remove();
    },
  };
}

// The elements around the canvases.
function build(state, element, options) {
  const root = (state.root = made("div", "", { class: "pipesched-chart" }));
  element.append(root);
  const controls = made("div", "");
  state.controls = makeControls(state, controls);
  if (options.controls !== false) root.append(controls);
  state.legend = made("p", "", { class: "pipesched-legend" });
  const help = made("p", KEYS, { id: `pipesched-keys-${++fields}` }), keys = made("details", "", { class: "pipesched-keys" });
  keys.append(made("summary", "Keys"), help);
  state.canvases = made("div", "", {
    class: "pipesched-canvases", tabindex: 0, role: "application", "aria-roledescription": "interactive chart", "aria-describedby": help.id,
  });
  state.said = made("p", "", { class: "pipesched-said", role: "status", "aria-live": "polite" });
  state.tip = made("div", "", { class: "pipesched-tip", "aria-hidden": "true" });
  state.tip.hidden = true;
  root.append(state.legend, state.canvases, state.said);
  state.table = makeTable(state, root);
  root.append(keys);
  root.append(state.tip);
}

// All that follows from the document being another one.
function taken(state) {
  state.canvases.setAttribute("aria-label", summary(state.data));
  refreshControls(state);
  fillLegend(state);
  state.table.refresh();
  layOut(state);
}

// The places of the boxes and the heights of the charts.
function layOut(state) {
  const { document } = state.data;
  state.lanes = lanesOf(document, state.streams);
  state.places = document.styles.map((style) => place(style, state.lanes));
  state.paints = paints(document, state.theme);
  fit(state);
}

function fit(state) {
  const width = state.canvases.clientWidth;
  if (width) for (const plot of state.plots) plot.fit(width);
  redraw(state);
}

// Another schedule in the same chart: what is shown of time stays, unless it was all of it.
function update(state, document) {
  const all = showsAll(state);
  state.data = decoded(document);
  state.selected = state.interval = null;
  state.said.textContent = "";
  if (state.followed !== null && state.followed >= document.microbatches) state.followed = null;
  taken(state);
  for (const plot of state.plots) plot.setData(extent(state), false);
  if (all) showAll(state); else show(state, state.view.from, state.view.to);
}

function theme(state, name) {
  state.asked = name;
  applyTheme(state);
  state.paints = paints(state.data.document, state.theme);
  for (const plot of state.plots) plot.redraw(false, true);
}

function applyTheme(state) {
  const name = state.asked === "auto" ? (prefersDark() ? "dark" : "light") : state.asked;
  state.theme = THEMES[name];
  state.root.dataset.theme = name;
}

globalThis.pipesched = { ...globalThis.pipesched, chart, course };
