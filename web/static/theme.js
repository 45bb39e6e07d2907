// Light, dark, or as the system has it; kept in this browser.

import { byId } from "./words.js";

const KEY = "pipesched-theme";

export function makeTheme(changed) {
  const menu = byId("theme");
  try {
    menu.value = localStorage.getItem(KEY) ?? "auto";
  } catch {
    menu.value = "auto";
  }
  const apply = () => {
    if (menu.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = menu.value;
    changed(menu.value);
  };
  menu.addEventListener("change", () => {
    try {
      localStorage.setItem(KEY, menu.value);
    } catch {
      // Forbidden storage: the choice holds until the page is left.
    }
    apply();
  });
  apply();
}
