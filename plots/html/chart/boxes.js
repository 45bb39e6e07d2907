// Draws the passes: wide ones as boxes with their numbers, narrow ones as the mean colour of what a pixel column holds.

const NARROW = 5; // CSS pixels; a box below is part of a mean
const INSTANT = 2; // CSS pixels: width of the line of what takes no time, which has no width of its own
const INSTANT_SHARE = 0.25; // of the device's longest box, its greatest width: zoomed out, lines leave boxes visible

function drawBoxes(state, u) {
  const { ctx, bbox } = u, ratio = devicePixelRatio || 1, scale = u.scales.x;
  const area = {
    left: bbox.left, top: bbox.top, width: bbox.width, row: bbox.height / state.data.devices, ratio,
    from: scale.min, to: scale.max, perUnit: bbox.width / (scale.max - scale.min), theme: state.theme,
  };
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  const means = meansOf(state, area);
  for (let device = 0; device < state.data.devices; device++) drawDevice(state, ctx, area, means, device);
  means.draw(ctx);
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  for (let device = 0; device < state.data.devices; device++) drawNumbers(state, ctx, area, device);
  drawMarks(state, ctx, area);
  ctx.restore();
}

// Which passes are faded: all but those followed and those on the lit critical path, if there are any.
function fading(state, device) {
  const { followed, criticalShown, data } = state;
  if (followed === null && !criticalShown) return () => false;
  const row = data.rows[device], critical = data.critical[device];
  return (i) => !((followed !== null && row.microbatch[i] === followed) || (criticalShown && critical[i]));
}

// The width of the line of what takes no time; `perUnit` is in pixels, of which a CSS pixel has `ratio`.
function instantWidth(row, perUnit, ratio) {
  return Math.min(INSTANT * ratio, row.longest ? INSTANT_SHARE * row.longest * perUnit : Infinity);
}

function drawDevice(state, ctx, area, means, device) {
  const row = state.data.rows[device], { paints, places, theme } = state, faded = fading(state, device);
  const top = area.top + device * area.row, narrow = NARROW * area.ratio, edge = Math.max(1, Math.round(area.ratio / 2));
  const fadedEdge = mixed(theme.edge, theme.idle, 0.3), instant = instantWidth(row, area.perUnit, area.ratio);
  for (let i = firstBox(row, area.from); i < row.count && row.start[i] <= area.to; i++) {
    const spot = places[row.style[i]];
    if (!spot || row.end[i] < area.from) continue;
    const left = area.left + (row.start[i] - area.from) * area.perUnit, wide = (row.end[i] - row.start[i]) * area.perUnit;
    const paint = paints[row.style[i]], dim = faded(i);
    if (wide === 0) {
      const within = Math.max(0, Math.min(Math.round(left - area.left - instant / 2), area.width - instant));
      means.add(device, paint, within, instant, dim);
      continue;
    }
    if (wide < narrow) {
      means.add(device, paint, left - area.left, wide, dim);
      continue;
    }
    const y = top + spot.top * area.row, high = spot.height * area.row;
    ctx.fillStyle = dim ? fadedEdge : theme.edge;
    ctx.fillRect(left, y, wide, high);
    ctx.fillStyle = dim ? paint.faded : paint.colour;
    if (high > 4 * edge) ctx.fillRect(left + edge / 2, y + edge / 2, wide - edge, high - edge);
    else ctx.fillRect(left + edge / 2, y, wide - edge, high);
  }
}

// Numbers of micro-batches, with the names of tasks where they fit too.
function drawNumbers(state, ctx, area, device) {
  const row = state.data.rows[device], { paints, places } = state, faded = fading(state, device);
  const digits = String(Math.max(0, state.data.document.microbatches - 1)).length;
  const least = 7 * area.ratio;
  let font = 0, digit = 0;
  for (let i = firstBox(row, area.from); i < row.count && row.start[i] < area.to; i++) {
    const spot = places[row.style[i]];
    if (!spot || row.end[i] <= area.from) continue;
    const wide = (row.end[i] - row.start[i]) * area.perUnit;
    const size = Math.min(12 * area.ratio, spot.height * area.row * 0.78);
    if (size < least || wide < size * 0.6) continue;
    if (size !== font) {
      font = size;
      ctx.font = `${size}px system-ui, sans-serif`;
      digit = ctx.measureText("0").width;
    }
    if (wide < digit * digits + 3) continue;
    const paint = paints[row.style[i]], left = Math.max(0, (row.start[i] - area.from) * area.perUnit);
    const right = Math.min(area.width, (row.end[i] - area.from) * area.perUnit);
    const both = paint.task ? `${paint.task} ${row.microbatch[i]}` : "";
    const text = both && right - left > ctx.measureText(both).width + 4 ? both : String(row.microbatch[i]);
    ctx.fillStyle = faded(i) ? paint.fadedInk : paint.ink;
    const middle = area.left + (left + right) / 2, y = area.top + device * area.row + (spot.top + spot.height / 2) * area.row;
    if (right - left > digit * digits) ctx.fillText(text, middle, y + area.ratio / 2);
  }
}
