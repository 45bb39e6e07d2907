// The passes of a device as a table, for those who do not see the chart; made when it is opened, a part at a time.

const PART = 200; // rows

function makeTable(state, parent) {
  const details = made("details", ""), device = made("select", "", { "aria-label": "Device" }), body = made("tbody", "");
  const more = made("button", "More passes", { type: "button" }), table = made("table", ""), head = made("tr", "");
  for (const name of ["Pass", "What", "Micro-batch", "Start", "End", "Device then"]) head.append(made("th", name, { scope: "col" }));
  const top = made("thead", "");
  top.append(head);
  table.append(made("caption", ""), top, body);
  const label = made("label", "Device ");
  label.append(device);
  details.append(made("summary", "The passes as a table"), label, table, more);
  parent.append(details);
  const part = { details, device, table, body, more };
  const again = () => fillTable(state, part, 0);
  details.addEventListener("toggle", () => details.open && again(), { signal: state.signal });
  device.addEventListener("change", again, { signal: state.signal });
  more.addEventListener("click", () => fillTable(state, part, body.rows.length), { signal: state.signal });
  part.refresh = () => {
    device.replaceChildren(...state.data.rows.map((_, d) => made("option", String(d), { value: d })));
    if (details.open) again();
  };
  return part;
}

function fillTable(state, part, from) {
  const d = Number(part.device.value), row = state.data.rows[d], { document } = state.data, to = Math.min(row.count, from + PART);
  part.table.caption.textContent = `Device ${d}: ${row.count} boxes${document.unit ? `, times in ${document.unit}` : ""}`;
  const rows = [];
  for (let i = from; i < to; i++) {
    const line = made("tr", "");
    const cells = [passName(state.data, d, i), document.styles[row.style[i]].what, row.microbatch[i], plain(row.start[i]), plain(row.end[i])];
    for (const cell of [...cells, memoryText(state.data, d, row.start[i])]) line.append(made("td", String(cell)));
    rows.push(line);
  }
  if (from) part.body.append(...rows); else part.body.replaceChildren(...rows);
  part.more.hidden = to >= row.count;
}
