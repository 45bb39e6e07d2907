// Colours of canvas and page in light and in dark, and the lanes of a device's row.

const THEMES = {
  light: {
    paper: "#ffffff", ink: "#1c1f23", quiet: "#5d6670", grid: "#e3e6ea", edge: "#2b2b2b", idle: "#f4f5f7",
    area: "#a9c6e3", outline: "#2f5f91", fixed: "#8f98a3", cap: "#c0392b", host: "#7d5ba6", critical: "#c2185b", chosen: "#0b57d0",
    best: "#b85c00", bound: "#0b57d0",
  },
  dark: {
    paper: "#15181c", ink: "#e8eaed", quiet: "#a3abb5", grid: "#2b3036", edge: "#0c0e10", idle: "#1d2126",
    area: "#2f5478", outline: "#8cb8e6", fixed: "#66707b", cap: "#ff7b6b", host: "#c3a5ec", critical: "#ff5fa2", chosen: "#8ab4f8",
    best: "#f5a623", bound: "#8ab4f8",
  },
};
const FADED = 0.18; // how much of its colour a pass keeps while others are lit

const prefersDark = () => matchMedia("(prefers-color-scheme: dark)").matches;

function rgb(hex) {
  const number = parseInt(hex.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

function mixed(hex, other, share) {
  const [one, two] = [rgb(hex), rgb(other)];
  return "#" + one.map((c, i) => Math.round(c * share + two[i] * (1 - share)).toString(16).padStart(2, "0")).join("");
}

// The styles of a document with what drawing needs: colour lit and faded, as text and as numbers.
function paints(document, theme) {
  return document.styles.map((style) => {
    const faded = mixed(style.colour, theme.idle, FADED);
    return { ...style, faded, lit: rgb(style.colour), dim: rgb(faded), fadedInk: mixed(theme.ink, theme.idle, 0.45) };
  });
}

// Top and height of each stream's lane in a device's row of height 1; a hidden lane is null.
const GAP = 0.12;
function lanesOf(document, streams) {
  const shown = document.lanes.map((lane, n) => (n === 0 || streams ? lane.share : 0));
  const unit = (1 - GAP) / shown.reduce((a, b) => a + b, 0);
  let top = GAP / 2;
  return shown.map((share) => {
    if (!share) return null;
    const lane = { top, height: share * unit };
    top += lane.height;
    return lane;
  });
}

// The part of a device's row that a box of this style fills.
function place(style, lanes) {
  const lane = lanes[style.lane];
  if (!lane) return null;
  if (!style.half) return lane;
  return { top: lane.top + (style.half === 2 ? lane.height / 2 : 0), height: lane.height / 2 };
}
