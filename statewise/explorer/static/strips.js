// Heat maps over the steps: one column a step, one row a unit. A picture has a title, a sentence and a table beside it.

import { digits, make, visible } from "./elements.js";

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const PALETTES = {
  signed: { light: [[37, 99, 168], [246, 246, 243], [194, 90, 20]], dark: [[96, 165, 230], [32, 37, 44], [240, 150, 80]] },
  share: { light: [[246, 246, 243], [127, 191, 180], [11, 95, 88]], dark: [[32, 37, 44], [24, 110, 102], [120, 230, 212]] },
};

function colour(palette, position) {
  const [low, middle, high] = PALETTES[palette][dark.matches ? "dark" : "light"];
  const [from, to, part] = position < 0.5 ? [low, middle, 2 * position] : [middle, high, 2 * position - 1];
  return from.map((value, place) => value + (to[place] - value) * part);
}

function paint(canvas, values, palette, bound) {
  const steps = values.length, units = values[0].length;
  canvas.width = steps;
  canvas.height = units;
  const context = canvas.getContext("2d"), image = context.createImageData(steps, units);
  for (let step = 0; step < steps; step += 1) {
    for (let unit = 0; unit < units; unit += 1) {
      const value = values[step][unit] ?? 0;
      const position = palette === "signed" ? 0.5 + value / bound / 2 : value / bound;
      const [red, green, blue] = colour(palette, Math.max(0, Math.min(1, position)));
      image.data.set([red, green, blue, 255], 4 * (unit * steps + step));
    }
  }
  context.putImageData(image, 0, 0);
}

const rowHeight = (units) => (units <= 3 ? 18 : units <= 12 ? 13 : units <= 40 ? 7 : 4);

export class Strip {
  // names: what a row is called; chosen: what is done when a column is chosen.
  constructor({ title, values, palette, names = null, chosen }) {
    Object.assign(this, { title, values, palette, names });
    const all = values.flat().map((value) => Math.abs(value ?? 0));
    this.bound = palette === "share" ? 1 : Math.max(1e-6, ...all);
    this.canvas = make("canvas", { role: "img" });
    this.cursor = make("div", { class: "cursor", "aria-hidden": "true" });
    this.note = make("span", { class: "note soft" });
    const body = make("div", { class: "body" }, this.canvas, this.cursor);
    const units = values[0].length;
    body.style.setProperty("--height", `${units * rowHeight(units)}px`);
    this.element = make("div", { class: "strip" }, make("div", { class: "head" },
      make("span", { class: "name" }, title), this.note), body);
    const cell = (event) => {
      const box = this.canvas.getBoundingClientRect();
      const part = (at, size, count) => Math.max(0, Math.min(count - 1, Math.floor((at / size) * count)));
      return [part(event.clientX - box.left, box.width, values.length), part(event.clientY - box.top, box.height, units)];
    };
    this.canvas.addEventListener("pointermove", (event) => this.tell(...cell(event)));
    this.canvas.addEventListener("pointerleave", () => this.show(this.at));
    this.canvas.addEventListener("click", (event) => chosen(cell(event)[0]));
    this.repaint();
  }

  repaint() { paint(this.canvas, this.values, this.palette, this.bound); }

  tell(step, unit) {
    const row = this.names ? this.names[unit] : `unit ${unit}`;
    this.note.textContent = `step ${step}, ${row}: ${digits(this.values[step][unit], 3)}`;
  }

  show(at) {
    this.at = at;
    this.cursor.style.setProperty("--at", at);
    const column = this.values[at].filter((value) => value !== null);
    const low = Math.min(...column), high = Math.max(...column);
    const best = this.values[at].indexOf(high);
    const told = this.palette === "share" && this.names
      ? `${this.names[best]} ${digits(high)}` : `${digits(low)} to ${digits(high)}`;
    this.note.textContent = told;
    this.canvas.setAttribute("aria-label",
      `${this.title}, ${this.values[0].length} rows by ${this.values.length} steps; at step ${at}: ${told}`);
  }
}

export function ruler(steps, chosen) {
  return make("div", { class: "ruler", "aria-hidden": "true" }, ...steps.map((name, place) =>
    make("span", { title: name, onclick: () => chosen(place) }, visible(name))));
}

export const onTheme = (changed) => dark.addEventListener("change", changed);
