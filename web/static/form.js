// The form of the problem: built from what the server says of each field, filled from the text.

import { byId, made } from "./words.js";

const fields = new Map(); // by key path: { input, wrong }

// `typed(path, value)` is called when a field was changed.
export function build(groups, typed) {
  const form = byId("panel-form");
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const group of groups) {
    const held = group.fields.map((field) => row(field, typed));
    if (!group.title) form.lastElementChild.append(...held);
    else form.append(made("fieldset", {}, made("legend", {}, group.title), ...held));
  }
}

function row(field, typed) {
  const id = "field-" + field.path.replaceAll(".", "-");
  const input = field.choices ? chooser(id, field) : entry(id, field);
  const hint = made("small", { id: id + "-hint" }, field.hint);
  const wrong = made("small", { id: id + "-wrong", class: "wrong" });
  input.setAttribute("aria-describedby", `${id}-wrong ${id}-hint`);
  input.addEventListener("input", () => typed(field.path, input.value));
  fields.set(field.path, { input, wrong });
  const list = field.suggestions
    ? [made("datalist", { id: id + "-list" }, ...field.suggestions.map((one) => made("option", { value: one })))] : [];
  return made("div", { class: "field" }, made("label", { for: id }, field.label), input, ...list, wrong, hint);
}

function chooser(id, field) {
  const standard = made("option", { value: "" }, `${field.default} (default)`);
  return made("select", { id }, standard, ...field.choices.map((one) => made("option", { value: one }, one)));
}

function entry(id, field) {
  const input = made("input", { id, type: "text", spellcheck: "false", placeholder: field.default ?? "", "data-standard": field.default ?? "" });
  if (field.suggestions) input.setAttribute("list", id + "-list");
  if (field.number) input.setAttribute("inputmode", "text");
  return input;
}

// The values of a text; the field that is being typed into keeps what it has.
export function fill(values, pending) {
  for (const [path, { input }] of fields) {
    const value = values[path];
    const other = value === null; // a value that no field can hold, such as a row a device
    input.disabled = other;
    if (other) input.value = "";
    if (input.tagName === "INPUT") input.placeholder = other ? "edit this as YAML" : input.dataset.standard ?? "";
    if (!other && input !== document.activeElement && !pending.has(path)) input.value = value ?? "";
  }
}

// Marks the fields that mistakes speak of.
export function mark(mistakes) {
  for (const [path, { input, wrong }] of fields) {
    const own = mistakes.filter((one) => one.path === path).map((one) => one.text);
    wrong.textContent = own.join("; ");
    if (own.length) input.setAttribute("aria-invalid", "true"); else input.removeAttribute("aria-invalid");
  }
}

export function focus(path) {
  const field = fields.get(path);
  field?.input.focus();
  return Boolean(field);
}
