// Draws what each device holds over time: a strip a device in one scale, with capacity, what is always held, and hosts.

const ROOM = 0.84; // of a device's strip, for the largest level

function drawMemory(state, u) {
  const { ctx, bbox } = u, { data, theme } = state, ratio = devicePixelRatio || 1, scale = u.scales.x;
  const row = bbox.height / data.devices, perUnit = bbox.width / (scale.max - scale.min);
  const area = { left: bbox.left, width: bbox.width, from: scale.min, to: scale.max, perUnit, end: data.end };
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  const filled = new Path2D(), fixed = new Path2D(), lines = new Path2D(), caps = new Path2D(), hosts = new Path2D();
  for (let device = 0; device < data.devices; device++) {
    const base = bbox.top + (device + 0.95) * row, high = (row * ROOM) / data.memoryTop;
    outline(filled, data.held[device], area, base, high);
    const fixedHigh = data.document.memory.static[device] * high;
    if (fixedHigh) fixed.rect(bbox.left, base - fixedHigh, (Math.min(area.end, area.to) - area.from) * perUnit, fixedHigh);
    lines.rect(bbox.left, base, bbox.width, Math.max(1, ratio / 2));
    const cap = data.document.memory.capacity[device];
    if (cap !== null) {
      caps.moveTo(bbox.left, base - cap * high);
      caps.lineTo(bbox.left + bbox.width, base - cap * high);
    }
  }
  for (const host of data.hosts) {
    outline(hosts, host, area, bbox.top + (host.device + 0.95) * row, (row * ROOM) / data.memoryTop);
  }
  ctx.fillStyle = theme.area;
  ctx.fill(filled);
  ctx.fillStyle = theme.fixed;
  ctx.fill(fixed);
  ctx.fillStyle = theme.outline;
  ctx.fill(lines);
  stroke(ctx, hosts, theme.host, ratio, []);
  stroke(ctx, caps, theme.cap, ratio, [5 * ratio, 3 * ratio]);
  if (narrow(u)) drawPeaks(ctx, peaks(state, u), bbox, theme.ink, ratio);
  ctx.restore();
}

// Peaks in the middle of their strips, where there is no room at the right.
function drawPeaks(ctx, texts, bbox, ink, ratio) {
  ctx.fillStyle = ink;
  ctx.font = `${12 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  texts.forEach((text, d) => ctx.fillText(text, bbox.left + bbox.width / 2, bbox.top + ((d + 0.6) * bbox.height) / texts.length));
}

function stroke(ctx, path, colour, width, dashes) {
  ctx.setLineDash(dashes);
  ctx.strokeStyle = colour;
  ctx.lineWidth = width;
  ctx.stroke(path);
  ctx.setLineDash([]);
}

// The steps as an area above a base. Where several fall into one pixel column it shows the highest, so that no peak is lost.
function outline(path, row, area, base, high) {
  const x = (time) => area.left + (time - area.from) * area.perUnit, until = Math.min(area.end, area.to);
  let i = Math.max(0, firstAbove(row.at, area.from) - 1);
  if (i >= row.count || row.at[i] > until) return;
  let y = base;
  path.moveTo(Math.max(x(row.at[i]), area.left), base);
  while (i < row.count && row.at[i] <= until) {
    const here = Math.max(x(row.at[i]), area.left), column = Math.floor(here) + 1;
    let most = row.level[i++];
    while (i < row.count && row.at[i] <= until && x(row.at[i]) < column) most = Math.max(most, row.level[i++]);
    const last = row.level[i - 1];
    path.lineTo(here, y);
    path.lineTo(here, base - most * high);
    y = base - last * high;
    if (last !== most) {
      path.lineTo(column, base - most * high);
      path.lineTo(column, y);
    }
  }
  path.lineTo(x(until), y);
  path.lineTo(x(until), base);
  path.closePath();
}
