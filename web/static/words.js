// Numbers and small elements, as all parts of the page show them.

const FIGURES = new Intl.NumberFormat("en", { maximumSignificantDigits: 7, useGrouping: false });
const SHARES = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

export const figure = (number) => (number === null || number === undefined ? "–" : FIGURES.format(number));
export const withUnit = (number, unit) => (number === null || number === undefined ? "–" : `${figure(number)} ${unit ?? ""}`.trim());
export const percent = (share) => (share === null || share === undefined ? "–" : `${SHARES.format(100 * share)} %`);

export function memoryRange(amounts) {
  if (!amounts) return "–";
  const least = figure(Math.min(...amounts)), most = figure(Math.max(...amounts));
  return least === most ? most : `${least} – ${most}`;
}

export function made(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") element.className = value;
    else if (key in element && typeof value !== "string") element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

export const byId = (name) => document.getElementById(name);

// A file for the person to keep.
export function handOver(name, content) {
  const link = made("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

// One line for the person, also for screen readers; it goes after a while.
let clearing = 0;
export function say(text, bad = false) {
  const line = byId("said");
  line.textContent = text;
  line.classList.toggle("bad", bad);
  clearTimeout(clearing);
  clearing = setTimeout(() => { line.textContent = ""; }, bad ? 15000 : 6000);
}
