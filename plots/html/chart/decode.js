// A chart's document with its differences added up, in arrays that are searched by time.

function decoded(document) {
  const rows = document.boxes.map((flat) => boxRow(flat, document.tick));
  const held = document.memory.steps.map((flat) => stepRow(flat, document.tick));
  const hosts = document.memory.hosts.map((host) => ({ ...host, ...stepRow(host.steps, document.tick) }));
  const critical = rows.map((row) => new Uint8Array(row.count));
  const path = [];
  for (let i = 0; i < document.critical.length; i += 2) {
    const [device, index] = [document.critical[i], document.critical[i + 1]];
    critical[device][index] = 1;
    path.push([device, index]);
  }
  const known = document.memory.capacity.map((one) => one ?? 0);
  const top = [...held, ...hosts].reduce((most, row) => Math.max(most, row.peak), Math.max(...known, 0));
  const waits = rows.map((_, device) => waitsOf(document.waits[device] ?? []));
  return {
    waits, document, rows, held, hosts, critical, path,
    devices: rows.length, end: document.end * document.tick, memoryTop: top || 1,
    passes: rows.reduce((sum, row) => sum + row.count, 0),
  };
}

// By the place of a box the device and place of what it waits for.
function waitsOf(flat) {
  const found = new Map();
  for (let i = 0; i < flat.length; i += 3) found.set(flat[i], [flat[i + 1], flat[i + 2]]);
  return found;
}

// Starts, ends, micro-batches and styles of a device's boxes in the order of starts; `longest` bounds a search by time.
function boxRow(flat, tick) {
  const count = flat.length / 4;
  const row = {
    count, start: new Float64Array(count), end: new Float64Array(count),
    microbatch: new Uint32Array(count), style: new Uint32Array(count), longest: 0,
  };
  let at = 0;
  for (let i = 0; i < count; i++) {
    at += flat[4 * i];
    row.start[i] = at * tick;
    row.end[i] = (at + flat[4 * i + 1]) * tick;
    row.microbatch[i] = flat[4 * i + 2];
    row.style[i] = flat[4 * i + 3];
    row.longest = Math.max(row.longest, row.end[i] - row.start[i]);
  }
  return row;
}

function stepRow(flat, tick) {
  const count = flat.length / 2;
  const row = { count, at: new Float64Array(count), level: new Float64Array(count), peak: 0 };
  let at = 0;
  for (let i = 0; i < count; i++) {
    at += flat[2 * i];
    row.at[i] = at * tick;
    row.level[i] = flat[2 * i + 1];
    row.peak = Math.max(row.peak, row.level[i]);
  }
  return row;
}

// The first place whose number is above `value`, in numbers that ascend.
function firstAbove(numbers, value) {
  let low = 0, high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] > value) high = middle; else low = middle + 1;
  }
  return low;
}

// The level that a row of steps has at a time.
function levelAt(row, time) {
  const after = firstAbove(row.at, time);
  return after ? row.level[after - 1] : 0;
}

// The first box that may reach into what is shown from a time on: none is longer than the longest.
function firstBox(row, from) {
  return firstAbove(row.start, from - row.longest * 1.000001 - 1e-12);
}

// The box of a device at a time whose rectangle `holds(style)`; -1 if there is none. What takes no time is found first,
// from as far as `near`.
function boxAt(row, time, holds, near) {
  let nearest = -1;
  const far = (i) => (i < 0 ? Infinity : Math.abs(row.start[i] - time));
  for (let i = firstAbove(row.start, time + near) - 1; i >= 0 && row.start[i] >= time - near; i--)
    if (row.end[i] === row.start[i] && far(i) < far(nearest) && holds(row.style[i])) nearest = i;
  if (nearest >= 0) return nearest;
  for (let i = firstAbove(row.start, time) - 1; i >= 0 && row.start[i] >= time - row.longest * 1.000001; i--)
    if (row.end[i] > time && holds(row.style[i])) return i;
  return -1;
}
