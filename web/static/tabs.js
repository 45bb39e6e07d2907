// The two ways to edit, as tabs: arrows move between them, as screen readers expect.

import { keep, kept } from "./memory.js";
import { byId } from "./words.js";

const NAMES = ["form", "yaml"];

export function makeTabs() {
  for (const name of NAMES) {
    const tab = byId(`tab-${name}`);
    tab.addEventListener("click", () => select(name));
    tab.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      event.preventDefault();
      const other = NAMES[1 - NAMES.indexOf(name)];
      select(other);
      byId(`tab-${other}`).focus();
    });
  }
  select(kept.panel ?? "form");
}

function select(name) {
  keep({ panel: name });
  for (const one of NAMES) {
    const chosen = one === name, tab = byId(`tab-${one}`);
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
    byId(`panel-${one}`).hidden = !chosen;
  }
}
