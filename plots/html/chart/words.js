// What the chart says of a pass, of a device's memory and of itself: for pointers, screen readers and the table.

const plain = (number) => String(Number(number.toPrecision(9)));
const rough = (number) => Number(number.toPrecision(6)); // of a time that is pointed at: pixels tell no more

// A peak with the capacity that it has, if any: all of its whole units, and at least six digits, rounded down where it
// fits and up where it does not.
function peakOf(peak, capacity) {
  if (capacity === null) return peak < 1e6 ? String(rough(peak)) : String(Math.round(peak));
  if (peak === capacity) return `${plain(peak)} of ${plain(peak)}`;
  const [digits, power] = peak.toExponential(11).split("e"), shown = Math.max(5, Number(power));
  const up = peak > capacity && Number(digits.slice(2 + shown)) > 0 ? Number(`1e${Number(power) - shown}`) : 0;
  return `${plain(Number(`${digits.slice(0, 2 + shown)}e${power}`) + up)} of ${plain(capacity)}`;
}

const withUnit = (number, unit) => plain(number) + (unit ? " " + unit : "");

function passName(data, device, index) {
  const row = data.rows[device], style = data.document.styles[row.style[index]];
  return style.pass + "." + row.microbatch[index] + pieceOf(style) + (style.task ? "/" + style.task : "");
}

const pieceOf = (style) => (style.piece === null ? "" : "." + style.piece);

function memoryText(data, device, time) {
  const { unit, capacity } = data.document.memory, cap = capacity[device];
  const level = plain(levelAt(data.held[device], time));
  return cap === null ? `holds ${level} ${unit}` : `holds ${level} of ${plain(cap)} ${unit}`;
}

// Lines about a pass: its name, what it is, when it runs, what its device holds at a time.
function passLines(data, device, index, time) {
  const row = data.rows[device], style = data.document.styles[row.style[index]], unit = data.document.unit;
  const stream = data.document.lanes.length > 1 ? `, stream ${data.document.lanes[style.lane].stream}` : "";
  return [
    passName(data, device, index),
    `${style.what}, stage ${style.pass.replace(/^\D+/, "")}, micro-batch ${row.microbatch[index]}${style.piece === null ? "" : `, piece ${style.piece}`}, device ${device}${stream}`,
    `${plain(row.start[index])} to ${withUnit(row.end[index], unit)}: ${withUnit(row.end[index] - row.start[index], unit)}`,
    `at ${withUnit(time, unit)} the device ${memoryText(data, device, time)}`,
    ...(data.critical[device][index] ? ["on the critical path"] : []),
  ];
}

function summary(data) {
  const { schedule, problem, unit, microbatches, memory } = data.document;
  const peaks = data.held.map((row, d) => `device ${d} ${plain(row.peak)}`).slice(0, 8).join(", ");
  const more = data.devices > 8 ? " and so on" : "";
  return (
    `Chart of the schedule ${schedule} of ${problem}: ${data.passes} boxes on ${data.devices} devices, ` +
    `${microbatches} micro-batches, from 0 to ${withUnit(data.end, unit)}. Peak memory in ${memory.unit}: ${peaks}${more}.`
  );
}

const KEYS =
  "Keys: left and right move in time, plus and minus zoom, 0 shows all; N and P select the next and the previous pass of a " +
  "device, up and down the device above and below; Enter follows the selected micro-batch, C lights the critical path, " +
  "S hides or shows the other streams, I sums up the time of the selected pass over all devices, Escape clears. Dragging with Shift " +
  "selects an interval.";
