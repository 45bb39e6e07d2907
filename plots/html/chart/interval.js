// An interval of time that is selected: its band, and what the devices do in it, summed.

function chooseInterval(state, from, to) {
  const peers = state.group ? groups.get(state.group) : [state];
  for (const one of peers) {
    one.interval = from === null ? null : { from: Math.max(0, Math.min(from, to)), to: Math.min(one.data.end, Math.max(from, to)) };
    one.said.textContent = one.interval && one.interval.to > one.interval.from ? intervalText(one.data, one.interval) : "";
    redraw(one);
  }
}

// What all devices compute from one time to another, by what it is, and their idle time.
function sums(data, { from, to }) {
  const kinds = new Map(), idle = [];
  for (const row of data.rows) {
    let busy = 0;
    for (let i = firstBox(row, from); i < row.count && row.start[i] < to; i++) {
      const style = data.document.styles[row.style[i]];
      if (style.lane !== 0) continue;
      const within = Math.max(0, Math.min(row.end[i], to) - Math.max(row.start[i], from)) * (style.half ? 0.5 : 1);
      busy += within;
      if (within) kinds.set(style.what, (kinds.get(style.what) ?? 0) + within);
    }
    idle.push(Math.max(0, to - from - busy));
  }
  return { kinds, idle };
}

function intervalText(data, interval) {
  const { kinds, idle } = sums(data, interval), unit = data.document.unit, long = interval.to - interval.from;
  const all = long * data.devices, share = (part) => `${((100 * part) / all).toFixed(1)} %`;
  const total = idle.reduce((a, b) => a + b, 0), most = idle.indexOf(Math.max(...idle));
  const parts = [...kinds].map(([what, time]) => `${what.toLowerCase()} ${share(time)}`);
  return (
    `${plain(rough(interval.from))} to ${withUnit(rough(interval.to), unit)} (${withUnit(rough(long), unit)}), mean over devices: ` +
    [...parts, `idle ${share(total)}`].join(", ") + `; device ${most} idles most, ${withUnit(rough(idle[most]), unit)}`
  );
}

function drawInterval(state, u) {
  if (!state.interval) return;
  const { ctx, bbox } = u, { from, to } = state.interval, ratio = devicePixelRatio || 1;
  const left = u.valToPos(from, "x", true), wide = Math.max(ratio, u.valToPos(to, "x", true) - left);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.globalAlpha = 0.16;
  ctx.fillStyle = state.theme.chosen;
  ctx.fillRect(left, bbox.top, wide, bbox.height);
  ctx.globalAlpha = 1;
  ctx.strokeStyle = state.theme.chosen;
  ctx.lineWidth = 1.5 * ratio;
  ctx.strokeRect(left, bbox.top, wide, bbox.height);
  ctx.restore();
}
