// Fills a report: the chart of its schedules, alone or two above each other, how value and bound came together, the theme.

const charts = [];

async function schedules(place) {
  const names = await unpacked("schedules"), known = new Map();
  const read = (n) => known.get(n) ?? known.set(n, unpacked(`schedule-${n}`)).get(n);
  const choose = (text, options, act) => {
    const label = document.createElement("label"), list = document.createElement("select");
    list.append(...options.map(([value, name]) => new Option(name, value)));
    list.addEventListener("change", act);
    label.append(`${text} `, list);
    return { label, list };
  };
  const bar = document.createElement("p"), first = document.createElement("div"), second = document.createElement("div");
  bar.className = "choose";
  const heads = [first, second].map((part) => part.appendChild(document.createElement("h3")));
  const all = names.map((name, n) => [String(n), name]);
  const one = choose("Schedule", all, async () => {
    top.update(await read(Number(one.list.value)));
    say();
  });
  const other = choose("compared with", [["", "none"], ...all], compare);
  if (names.length > 1) bar.append(one.label, other.label);
  place.append(bar, first, second);
  const top = pipesched.chart(first, await read(0), { group: "report", theme: theme() });
  charts.push(top);
  let below = null;
  async function compare() {
    const data = other.list.value === "" ? null : await read(Number(other.list.value));
    if (data && below) {
      below.update(data);
    } else if (data) {
      charts.push((below = pipesched.chart(second, data, { group: "report", theme: theme() })));
    } else if (below) {
      charts.splice(charts.indexOf(below), 1);
      below.destroy();
      below = null;
    }
    say();
  }
  function say() { // which chart is which, where there are two
    [one.list, other.list].forEach(({ value }, n) => { heads[n].textContent = below ? names[Number(value)] : ""; });
  }
}

// The best value and the bound as steps over the seconds; where most happened early the seconds are in powers of ten.
async function course(place) {
  const { what, unit, moments, end } = await unpacked("course");
  if (moments.length < 2) return;
  const least = Math.max(1e-3, Math.min(...moments.map(([at]) => at).filter((at) => at > 0), end));
  const powers = end > 30 * least, seconds = [...moments.map(([at]) => Math.max(at, powers ? least : 0)), Math.max(end, least)];
  const last = moments[moments.length - 1];
  const data = [seconds, [...moments.map((one) => one[1]), last[1]], [...moments.map((one) => one[2]), last[2]]];
  const colour = (name) => () => getComputedStyle(document.documentElement).getPropertyValue(name);
  const steps = uPlot.paths.stepped({ align: 1 }), font = "12px system-ui, sans-serif";
  const axis = (label, size) => ({ label, size, stroke: colour("--ink"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, font, labelFont: font });
  const short = (u, numbers) => numbers.map((number) => (number === null ? "" : String(Number(number.toPrecision(6)))));
  const line = (label, name, width) => ({ label, stroke: colour(name), width, paths: steps, points: { show: false }, value: (u, v, n, i) => (i === null ? "–" : v === null ? "none yet" : `${Number(v.toPrecision(9))} ${unit}`) });
  const plot = new uPlot({
    width: place.clientWidth || 800, height: 280, scales: { x: { time: false, distr: powers ? 3 : 1 }, y: { range: aroundAll } },
    axes: [{ ...axis("Seconds of the search", 34), values: short }, { ...axis(unit ? `${what} (${unit})` : what, 70), values: short }],
    series: [{ label: "Seconds", value: (u, v) => (v === null ? "–" : v.toFixed(2)) }, line(`Best ${what}`, "--best", 4), line("Lower bound", "--bound", 2)],
    cursor: { drag: { x: true, y: false } },
  }, data, place);
  new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: 280 })).observe(place);
  charts.push({ theme: () => plot.redraw(false, true) });
}

// Some room above and below, also where nothing changes.
function aroundAll(plot, least, most) {
  const room = most > least ? (most - least) / 10 : Math.abs(most) / 20 || 1;
  return [least - room, most + room];
}

// Light, dark, or as the reader's system has it.
const theme = () => document.documentElement.dataset.theme ?? "auto";

function switchThemes(button) {
  const order = ["auto", "light", "dark"];
  const say = () => { button.textContent = `Colours: ${theme() === "auto" ? "as the system" : theme()}`; };
  button.addEventListener("click", () => {
    const next = order[(order.indexOf(theme()) + 1) % order.length];
    if (next === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = next;
    for (const chart of charts) chart.theme(next);
    say();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach((chart) => chart.theme(theme())));
  button.hidden = false;
  say();
}

switchThemes(document.getElementById("theme"));
for (const [name, fill] of Object.entries({ schedules, course })) {
  const place = document.getElementById(name);
  if (place) fill(place);
}
