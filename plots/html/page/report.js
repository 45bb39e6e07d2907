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

// How value and bound came together.
async function course(place) {
  const { what, unit, moments, end } = await unpacked("course");
  if (moments.length < 2) return;
  const drawn = pipesched.course(place, { what, unit, theme: theme() });
  drawn.update(moments, end);
  charts.push(drawn);
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
