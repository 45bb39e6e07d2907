// Best value and lower bound over the seconds of a search, as two stepped lines: what `pipesched.course` makes.

// Options: `what` is the value's name, `unit` its unit; `height`; `theme` as that of a chart. `update(moments, end)`
// draws moments of [seconds, value or null, bound], up to the seconds that the search has taken so far.
function course(element, { what, unit, height = 280, theme = "auto" }) {
  const root = made("div", "", { class: "pipesched-course" }), state = { plot: null, known: null, asked: theme };
  const stop = new AbortController();
  const size = () => ({ width: root.clientWidth || 800, height });
  element.append(root);
  themed(theme);
  const sizes = new ResizeObserver(() => state.plot?.setSize(size()));
  sizes.observe(root);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => themed(state.asked), { signal: stop.signal });

  function themed(name) {
    state.asked = name;
    root.dataset.theme = name === "auto" ? (prefersDark() ? "dark" : "light") : name;
    if (state.known) plot();
  }

  function plot() { // anew: a plot keeps its kind of axis, and the colours of its legend
    state.plot?.destroy();
    state.plot = new uPlot({ ...size(), ...linesOf(what, unit, state.known.powers, THEMES[root.dataset.theme]) }, state.known.data, root);
  }

  function update(moments, end) {
    const before = state.known;
    state.known = steps(moments, end);
    if (state.plot && before.powers === state.known.powers) state.plot.setData(state.known.data);
    else plot();
  }

  function destroy() {
    sizes.disconnect();
    stop.abort();
    state.plot?.destroy();
    root.remove();
  }

  return { update, theme: themed, destroy };
}

// The columns of the plot; the last values hold until the end. Where most happened early, seconds are in powers of ten.
function steps(moments, end) {
  const least = Math.max(1e-3, Math.min(...moments.map(([at]) => at).filter((at) => at > 0), end));
  const powers = end > 30 * least, last = moments[moments.length - 1];
  const seconds = [...moments.map(([at]) => Math.max(at, powers ? least : 0)), Math.max(end, least)];
  const known = (bound) => (bound > 0 ? bound : null); // all times are above 0: such a bound says nothing yet
  return { powers, data: [seconds, [...moments, last].map((one) => one[1]), [...moments, last].map((one) => known(one[2]))] };
}

// Axes and lines, as uPlot takes them.
function linesOf(what, unit, powers, colours) {
  const stepped = uPlot.paths.stepped({ align: 1 }), font = "12px system-ui, sans-serif";
  const short = (digits) => (_, numbers) => numbers.map((number) => (number === null ? "" : String(Number(number.toPrecision(digits)))));
  const axis = (label, size, digits) => ({
    label, size, stroke: colours.ink, grid: { stroke: colours.grid, width: 1 }, ticks: { stroke: colours.grid }, font, labelFont: font, values: short(digits),
  });
  const exact = (_, v, n, i) => (i === null ? "–" : v === null ? "none yet" : `${Number(v.toPrecision(9))} ${unit}`);
  const line = (label, name, width) => ({ label, stroke: colours[name], width, paths: stepped, points: { show: false }, value: exact });
  return {
    scales: { x: { time: false, distr: powers ? 3 : 1, range: (_, least, most) => [least, most] }, y: { range: aroundEnd } },
    axes: [axis("Seconds of the search", 34, 3), axis(unit ? `${what} (${unit})` : what, 70, 6)],
    series: [{ label: "Seconds", value: (_, v) => (v === null ? "–" : v.toFixed(2)) }, line(`Best ${what}`, "best", 4), line("Lower bound", "bound", 2)],
    cursor: { drag: { x: true, y: false } },
  };
}

// What matters is where value and bound end: of what came before, as much as five times the gap that is left, or 5 %.
function aroundEnd(u, least, most) {
  const last = (row) => row.findLast((one) => one !== null && one !== undefined), [value, bound] = [last(u.data[1]), last(u.data[2])];
  const ends = [value, bound].filter((one) => one !== undefined);
  const reach = ends.length ? Math.max(5 * Math.abs((value ?? bound) - (bound ?? value)), 0.05 * Math.abs(ends[0])) : Infinity;
  const low = Math.max(least, Math.min(...ends) - reach), high = Math.min(most, Math.max(...ends) + reach);
  const [from, to] = ends.length ? [low, high] : [least, most], room = to > from ? (to - from) / 10 : Math.abs(to) / 20 || 1;
  return [from - room, to + room];
}
