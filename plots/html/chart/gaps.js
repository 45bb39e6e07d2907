// Why a device idles at a time: what its next box waits for.

function gapLines(data, device, time) {
  const row = data.rows[device], unit = data.document.unit, onFirst = (i) => data.document.styles[row.style[i]].lane === 0;
  let next = firstAbove(row.start, time);
  while (next < row.count && !onFirst(next)) next++;
  let since = 0;
  for (let i = firstAbove(row.start, time) - 1, seen = 0; i >= 0 && seen < 64; i--)
    if (onFirst(i)) { since = Math.max(since, row.end[i]); seen++; }
  if (next >= row.count) return time > data.end ? null : [`Device ${device} has ended`, `its last pass ended at ${withUnit(since, unit)}`];
  const cause = data.waits[device].get(next), until = row.start[next];
  const lines = [`Device ${device} idles ${withUnit(until - since, unit)}`, `from ${plain(since)} to ${withUnit(until, unit)}, before ${passName(data, device, next)}`];
  if (cause) {
    const other = data.rows[cause[0]], end = other.end[cause[1]], late = until - end;
    lines.push(`which waits for ${passName(data, ...cause)} of device ${cause[0]}, ${late > 1e-9 ? `and ${withUnit(late, unit)} for its tensor` : "which ends then"}`);
  } else {
    lines.push("which could start sooner, or waits for another of its streams");
  }
  lines.push(`meanwhile the device ${memoryText(data, device, time)}`);
  return lines;
}
