// What a tab remembers over a reload. Each tab has its own, so that two of them do not disturb each other.

const KEY = "pipesched";

export const kept = read();

function read() {
  try {
    return JSON.parse(sessionStorage.getItem(KEY)) ?? {};
  } catch {
    return {};
  }
}

export function keep(changes) {
  Object.assign(kept, changes);
  try {
    sessionStorage.setItem(KEY, JSON.stringify(kept));
  } catch {
    // Storage is full or forbidden: the page works, only a reload forgets.
  }
}

// A tab that was opened as a copy of another has that one's memory, and must not take its solve for its own.
if (!kept.tab || performance.getEntriesByType("navigation")[0]?.type === "navigate") keep({ tab: crypto.randomUUID() });
