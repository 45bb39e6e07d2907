// The two charts of uPlot, passes above and memory below, on one time axis; it brings axes, grid, cursor and canvas.

const LEFT = 84, AXIS = 46, ROWS = 560; // CSS pixels; ROWS is what all rows of a chart share
const SMALL_WINDOW = 600; // below it names of devices are numbers, and peaks stand in the strips: times keep their room

let charts = 0; // a number for each, so that the cursors of a pair know each other

function makePlots(state, parent) {
  const key = `pipesched-${++charts}`;
  const passes = makePlot(state, parent, key, rowShare, drawBoxes, null, timeLabel);
  const memory = makePlot(state, parent, key, () => 1, drawMemory, (u) => peaks(state, u),
    (document) => `Memory, ${document.memory.unit} · ${timeLabel(document)}`);
  return [passes, memory];
}

const timeLabel = ({ unit }) => (unit ? `Time (${unit})` : "Time");

// How much higher a device's row of passes is for its streams.
function rowShare(state) {
  return state.lanes.reduce((sum, lane, n) => sum + (lane ? state.data.document.lanes[n].share : 0), 0);
}

function makePlot(state, parent, key, share, draw, aside, label) {
  const text = () => state.theme.ink, font = "12px system-ui, sans-serif";
  const heightOf = () => AXIS + 8 + Math.max(9, Math.min(34, ROWS / state.data.devices)) * share(state) * state.data.devices;
  const fits = (width) => ({ width: Math.max(200, width), height: Math.round(heightOf()) });
  const rows = {
    scale: "y", stroke: text, font, gap: 6, grid: { show: false }, ticks: { show: false }, splits: () => state.data.rows.map((_, d) => d + 0.5),
  };
  const options = {
    ...fits(parent.clientWidth || 800),
    legend: { show: false },
    padding: [8, (u) => (aside && !narrow(u) ? 0 : rightOf(state, u)), 0, 0],
    scales: { x: { time: false, range: (u, min, max) => [min, max] }, y: { range: () => [0, state.data.devices], dir: -1 } },
    series: [{}, { show: false, scale: "y" }],
    axes: [
      { stroke: text, font, labelFont: font, size: 28, labelSize: 18, label: () => label(state.data.document), grid: { stroke: () => state.theme.grid, width: 1 },
        ticks: { stroke: () => state.theme.grid }, values: (u, splits) => splits.map(plain), space: 80 },
      { ...rows, size: (u) => (narrow(u) ? 28 : LEFT), values: (u) => deviceNames(state, u) },
      ...(aside ? [{ ...rows, side: 1, align: 1, size: (u) => (narrow(u) ? 0 : rightOf(state, u)), values: (u) => (narrow(u) ? [] : aside(u)) }] : []),
    ],
    cursor: {
      points: { show: false }, drag: { x: false, y: false, setScale: false }, y: false,
      sync: { key, scales: ["x", null] }, bind: { dblclick: () => () => null, mousedown: () => () => null, mouseup: () => () => null },
    },
    hooks: { draw: [(u) => draw(state, u), (u) => drawInterval(state, u)] },
  };
  const plot = new uPlot(options, extent(state), parent);
  plot.over.style.cursor = "grab";
  plot.fit = (width) => plot.setSize(fits(width));
  return plot;
}

const narrow = (u) => u.width < SMALL_WINDOW;

const extent = (state) => [[0, Math.max(state.data.end, 1e-9)], [null, null]];

// A name for each row, or for every n-th where rows are lower than letters.
function deviceNames(state, u) {
  const every = step(state, u);
  return state.data.rows.map((_, d) => (d % every ? "" : narrow(u) ? `${d}` : `Device ${d}`));
}

// Peak and capacity of each device, at the right.
function peaks(state, u) {
  const every = step(state, u);
  return state.data.held.map((_, d) => (d % every ? "" : peakText(state.data, d)));
}

function peakText(data, d) {
  const cap = data.document.memory.capacity[d];
  return (d ? "" : "peak ") + peakOf(data.held[d].peak, cap);
}

// Room for the longest of these texts, alike beside both charts so that their times stay below each other.
function rightOf(state, u) {
  return narrow(u) ? 16 : 16 + 7.2 * Math.max(...state.data.rows.map((_, d) => peakText(state.data, d).length));
}

function step(state, u) {
  const row = (u.height - AXIS - 8) / state.data.devices;
  return Math.max(1, Math.ceil(13 / row));
}
