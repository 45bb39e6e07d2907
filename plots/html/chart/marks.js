// Draws the critical path, box by box with the waits between devices, and the selected pass.

function drawMarks(state, ctx, area) {
  if (state.criticalShown) drawPath(state, ctx, area);
  const chosen = state.selected;
  if (!chosen) return;
  const spot = corners(state, area, chosen.device, chosen.index);
  if (!spot) return;
  ctx.lineWidth = 2.5 * area.ratio;
  ctx.strokeStyle = area.theme.chosen;
  ctx.strokeRect(spot.left, spot.top, Math.max(spot.right - spot.left, 2 * area.ratio), spot.bottom - spot.top);
}

// A line through the middles of the path's boxes; in its box each is framed where it is wide enough.
function drawPath(state, ctx, area) {
  const { data } = state;
  ctx.strokeStyle = area.theme.critical;
  ctx.lineWidth = 1.5 * area.ratio;
  ctx.beginPath();
  let before = null;
  for (const [device, index] of data.path) {
    const spot = corners(state, area, device, index);
    if (!spot) continue;
    const middle = (spot.top + spot.bottom) / 2;
    if (before && before.device !== device && before.right < area.left + area.width && spot.left > area.left) {
      ctx.moveTo(before.right, before.middle);
      ctx.lineTo(spot.left, middle);
    }
    if (spot.right > area.left && spot.left < area.left + area.width) {
      if (spot.right - spot.left > 6 * area.ratio) {
        ctx.rect(spot.left + area.ratio, spot.top + area.ratio, spot.right - spot.left - 2 * area.ratio, spot.bottom - spot.top - 2 * area.ratio);
      } else {
        ctx.moveTo(spot.left, middle);
        ctx.lineTo(spot.right, middle);
      }
    }
    before = { device, right: spot.right, middle };
  }
  ctx.stroke();
}

function corners(state, area, device, index) {
  const row = state.data.rows[device], spot = state.places[row.style[index]];
  if (!spot) return null;
  const top = area.top + (device + spot.top) * area.row;
  return {
    left: area.left + (row.start[index] - area.from) * area.perUnit,
    right: area.left + (row.end[index] - area.from) * area.perUnit,
    top, bottom: top + spot.height * area.row,
  };
}
