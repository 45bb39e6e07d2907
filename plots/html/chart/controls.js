// The row of controls above the chart, and the legend of its colours.

let fields = 0; // a number for each labelled field

function made(name, text, attributes = {}) {
  const element = document.createElement(name);
  if (text) element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function makeControls(state, parent) {
  const bar = made("div", "", { class: "pipesched-controls", role: "group", "aria-label": "Controls of the chart" });
  const button = (text, label, act) => {
    const one = made("button", text, { type: "button", "aria-label": label, title: label });
    one.addEventListener("click", act, { signal: state.signal });
    return one;
  };
  const middle = () => (state.view.from + state.view.to) / 2;
  bar.append(
    button("+", "Zoom in", () => zoom(state, 0.6, middle())),
    button("−", "Zoom out", () => zoom(state, 1 / 0.6, middle())),
    button("All", "Show all", () => showAll(state)),
  );
  const check = (text, act) => {
    const box = made("input", "", { type: "checkbox" }), label = made("label", "");
    label.append(box, ` ${text}`);
    box.addEventListener("change", () => act(state, box.checked), { signal: state.signal });
    bar.append(label);
    return { box, label };
  };
  const select = check("Select interval", (of, on) => { of.selecting = on; });
  select.box.checked = state.selecting;
  const critical = check("Critical path", showCriticalPath), streams = check("Other streams", showStreams);
  const field = made("input", "", { type: "number", min: 0, step: 1, placeholder: "all", id: `pipesched-follow-${++fields}` });
  field.addEventListener("input", () => {
    const asked = field.value === "" ? NaN : Number(field.value);
    state.followed = Number.isInteger(asked) && asked >= 0 && asked < state.data.document.microbatches ? asked : null;
    redraw(state);
  }, { signal: state.signal });
  const follow = made("span");  // the two never on different lines
  follow.append(made("label", "Follow micro-batch", { for: field.id }), field);
  bar.append(follow);
  parent.append(bar);
  return { critical, streams, field };
}

// The controls as the chart is.
function refreshControls(state) {
  const { critical, streams, field } = state.controls, { document } = state.data;
  critical.box.checked = state.criticalShown;
  critical.label.hidden = !state.data.path.length;
  streams.box.checked = state.streams;
  streams.label.hidden = document.lanes.length < 2;
  field.max = document.microbatches - 1;
  field.value = state.followed ?? "";
}

function fillLegend(state) {
  const { legend, shades, memory } = state.data.document, parts = [];
  for (const { name, colour } of legend) parts.push(entry(name, `background:${colour}`));
  if (shades.length > 1) parts.push(made("span", `Shades, strong to pale: ${shades.join(", ")}`));
  if (memory.capacity.some((one) => one !== null)) parts.push(entry("Capacity of memory", "", "pipesched-cap"));
  if (memory.static.some((one) => one)) parts.push(entry("Always held", "", "pipesched-fixed"));
  if (memory.hosts.length) parts.push(entry("Held on the host", "", "pipesched-host"));
  state.legend.replaceChildren(...parts);
}

function entry(name, style, kind = "") {
  const one = made("span", ""), mark = made("i", "", { class: `pipesched-mark ${kind}`, "aria-hidden": "true" });
  mark.style.cssText = style;
  one.append(mark, name);
  return one;
}
