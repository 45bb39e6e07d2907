// Draws the charts of a page: passes and memory of every device on one time axis, which zooms and moves.
"use strict";
const canvas = document.getElementById("chart"), tip = document.getElementById("tip"), pen = canvas.getContext("2d");
const LEFT = 80, RIGHT = 110, AXIS = 34, BETWEEN = 26, devices = DATA.boxes.length;
const row = Math.max(16, Math.min(36, 520 / devices)) * DATA.rowShare, chart = row * devices;
const place = [0, chart + AXIS + BETWEEN];  // tops of the two charts
const scale = Math.max(...DATA.capacity.map(c => c || 0), ...DATA.memory.flatMap(m => m.filter((_, i) => i % 2)), 0) || 1;

// Back from differences to times; of each box start, end, micro-batch, style.
const rows = DATA.boxes.map(flat => {
  const out = []; let at = 0;
  for (let i = 0; i < flat.length; i += 4) { at += flat[i]; out.push([at, at + flat[i + 1], flat[i + 2], flat[i + 3]]); }
  return out;
});
const held = DATA.memory.map(flat => {
  const out = []; let at = 0;
  for (let i = 0; i < flat.length; i += 2) { at += flat[i]; out.push([at, flat[i + 1]]); }
  return out;
});

const longest = rows.map(list => list.reduce((most, box) => Math.max(most, box[1] - box[0]), 0));
const whole = DATA.end || 1;
let from = 0, to = whole, width = 0;
const x = t => LEFT + (t - from) / (to - from) * (width - LEFT - RIGHT);
const time = px => from + (px - LEFT) / (width - LEFT - RIGHT) * (to - from);
const plain = n => String(Number(n.toFixed(6)));

function show(a, b) {
  const span = Math.min(whole, Math.max(b - a, whole / 1e5));
  from = Math.max(0, Math.min(a, whole - span)); to = from + span;
  requestAnimationFrame(draw);
}

function draw() {
  const ratio = window.devicePixelRatio || 1, height = 2 * (chart + AXIS) + BETWEEN;
  width = canvas.clientWidth; canvas.style.height = height + "px";
  canvas.width = width * ratio; canvas.height = height * ratio;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0); pen.clearRect(0, 0, width, height);
  pen.textBaseline = "middle";
  drawRows(0, drawBoxes); drawRows(1, drawMemory);
  place.forEach(drawAxis);
}

function drawRows(which, one) {
  for (let d = 0; d < devices; d++) {
    const top = place[which] + d * row;
    pen.fillStyle = "#000"; pen.textAlign = "right"; pen.font = "12px sans-serif";
    const named = which ? [] : DATA.lanes;
    if (row >= 13) pen.fillText("Device " + d, LEFT - 8, top + row / 2 / (named.length ? DATA.rowShare : 1));
    pen.font = "9px sans-serif";
    if (row >= 20 * DATA.rowShare) for (const [stream, middle] of named) pen.fillText(stream, LEFT - 8, top + row * middle);
    pen.save(); pen.beginPath(); pen.rect(LEFT, top, width - LEFT - RIGHT, row); pen.clip();
    one(d, top); pen.restore();
  }
  if (which) drawPeaks();
}

function firstVisible(list, d) {  // boxes are in the order of their starts, and none is longer than the longest
  let low = 0, high = list.length;
  while (low < high) { const mid = (low + high) >> 1; if (list[mid][0] < from - longest[d]) low = mid + 1; else high = mid; }
  return low;
}

function drawBoxes(d, top) {
  const list = rows[d];
  for (let i = firstVisible(list, d); i < list.length && list[i][0] <= to; i++) {
    const [start, end, microbatch, style] = list[i], [, colour, ink, above, below, task] = DATA.styles[style];
    const left = x(start), wide = x(end) - left, y = top + above * row, high = (below - above) * row;
    if (wide <= 0) continue;
    pen.fillStyle = colour; pen.fillRect(left, y, wide, high);
    if (wide > 3) { pen.strokeStyle = "#2b2b2b"; pen.lineWidth = 0.6; pen.strokeRect(left, y, wide, high); }
    const size = Math.min(12, high * 0.75); pen.font = size + "px sans-serif";
    const both = task && task + " " + microbatch;
    const text = both && wide > pen.measureText(both).width + 3 ? both : String(microbatch);
    if (size >= 7 && wide > pen.measureText(text).width + 3) {
      pen.fillStyle = ink; pen.textAlign = "center"; pen.fillText(text, left + wide / 2, y + high / 2);
    }
  }
}

function drawMemory(d, top) {
  const base = top + row * 0.92, y = level => base - level / scale * row * 0.82, steps = held[d];
  pen.beginPath(); pen.moveTo(x(0), base);
  steps.forEach(([at, level], i) => {
    pen.lineTo(x(at), y(level)); pen.lineTo(x(i + 1 < steps.length ? steps[i + 1][0] : whole), y(level));
  });
  pen.lineTo(x(whole), base); pen.closePath();
  pen.fillStyle = "#a9c6e3"; pen.fill(); pen.strokeStyle = "#2f5f91"; pen.lineWidth = 0.8; pen.stroke();
  if (DATA.capacity[d] !== null) {
    pen.setLineDash([5, 3]); pen.strokeStyle = "#c0392b"; pen.beginPath();
    pen.moveTo(LEFT, y(DATA.capacity[d])); pen.lineTo(width - RIGHT, y(DATA.capacity[d])); pen.stroke(); pen.setLineDash([]);
  }
}

function drawPeaks() {
  pen.font = "11px sans-serif"; pen.textAlign = "left";
  for (let d = 0; d < devices && row >= 13; d++) {
    const peak = Math.max(...held[d].map(s => s[1])), cap = DATA.capacity[d];
    pen.fillStyle = cap !== null && peak > cap ? "#c0392b" : "#000";
    pen.fillText(plain(peak) + (cap === null ? "" : " of " + plain(cap)), width - RIGHT + 6, place[1] + d * row + row / 2);
  }
}

function drawAxis(top, which) {
  const bottom = top + chart, unit = DATA.unit ? " (" + DATA.unit + ")" : "";
  const rough = (to - from) * DATA.tick / Math.max(2, (width - LEFT - RIGHT) / 90);
  const power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map(f => f * power).find(s => s >= rough);
  pen.strokeStyle = "#000"; pen.lineWidth = 1; pen.beginPath();
  pen.moveTo(LEFT, top); pen.lineTo(LEFT, bottom); pen.lineTo(width - RIGHT, bottom); pen.stroke();
  pen.fillStyle = "#000"; pen.font = "11px sans-serif"; pen.textAlign = "center";
  for (let n = Math.ceil(from * DATA.tick / step); n * step <= to * DATA.tick * (1 + 1e-12); n++) {
    const at = x(n * step / DATA.tick);
    pen.beginPath(); pen.moveTo(at, bottom); pen.lineTo(at, bottom + 4); pen.stroke();
    pen.fillText(plain(n * step), at, bottom + 12);
  }
  pen.fillText((which ? "Memory, " + DATA.memoryUnit + " · time" : "Time") + unit, (LEFT + width - RIGHT) / 2, bottom + 27);
}

function pointed(event) {
  const box = canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top, t = time(px);
  tip.style.display = "none";
  if (px < LEFT || px > width - RIGHT) return;
  const which = py >= place[1] ? 1 : 0, d = Math.floor((py - place[which]) / row);
  if (d < 0 || d >= devices) return;
  let text = "";
  if (which) {
    const step = held[d].filter(s => s[0] <= t).pop();
    if (step) text = "Device " + d + " holds " + plain(step[1]) + " " + DATA.memoryUnit + " from " + plain(step[0] * DATA.tick) + " " + DATA.unit;
  } else {
    const inRow = (py - place[0]) / row - d;
    const hit = rows[d].find(b => b[0] <= t && t < b[1] && DATA.styles[b[3]][3] <= inRow && inRow < DATA.styles[b[3]][4]);
    const task = hit && DATA.styles[hit[3]][5];
    if (hit) text = DATA.styles[hit[3]][0] + "." + hit[2] + (task ? "/" + task : "") + " on device " + d + "\n" + plain(hit[0] * DATA.tick) + " to " + plain(hit[1] * DATA.tick) + " " + DATA.unit;
  }
  if (!text) return;
  tip.textContent = text; tip.style.display = "block";
  tip.style.left = Math.min(event.clientX + 12, window.innerWidth - tip.offsetWidth - 8) + "px"; tip.style.top = event.clientY + 12 + "px";
}

function zoom(factor, at) { show(at - (at - from) * factor, at + (to - at) * factor); }
let dragged = null;
canvas.addEventListener("wheel", e => { e.preventDefault(); zoom(e.deltaY > 0 ? 1.25 : 0.8, time(e.offsetX)); }, { passive: false });
canvas.addEventListener("pointerdown", e => { dragged = [e.clientX, from, to]; canvas.setPointerCapture(e.pointerId); });
canvas.addEventListener("pointerup", () => { dragged = null; });
canvas.addEventListener("pointermove", e => {
  if (!dragged) return pointed(e);
  const by = (dragged[0] - e.clientX) / (width - LEFT - RIGHT) * (dragged[2] - dragged[1]);
  show(dragged[1] + by, dragged[2] + by);
});
canvas.addEventListener("pointerleave", () => { tip.style.display = "none"; });
canvas.addEventListener("dblclick", () => show(0, whole));
document.addEventListener("keydown", e => {
  const span = to - from, middle = (from + to) / 2;
  const act = { "+": () => zoom(0.6, middle), "=": () => zoom(0.6, middle), "-": () => zoom(1 / 0.6, middle), "0": () => show(0, whole),
    ArrowLeft: () => show(from - span / 5, to - span / 5), ArrowRight: () => show(from + span / 5, to + span / 5) }[e.key];
  if (act) { e.preventDefault(); act(); }
});
window.addEventListener("resize", draw);
const asked = /^#(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(location.hash);  // page.html#120-180 opens on that time
if (asked) { show(asked[1] / DATA.tick, asked[2] / DATA.tick); }
draw();
