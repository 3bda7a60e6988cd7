// Going through the steps: a slider, buttons, keys, the tokens themselves, and a clock.

import { find, make, visible } from "./elements.js";

const PACE = 800; // milliseconds a step
const still = (target) => target.closest("input, select, textarea, [role=tab], summary, .scroll");

export class Transport {
  constructor(changed) {
    this.changed = changed;
    this.names = [];
    this.at = 0;
    this.clock = null;
    this.slider = find("step");
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value), { by: "hand" }));
    const moves = { first: () => 0, back: () => this.at - 1, ahead: () => this.at + 1, last: () => this.names.length - 1 };
    for (const [id, place] of Object.entries(moves)) find(id).addEventListener("click", () => this.go(place(), { by: "hand" }));
    find("play").addEventListener("click", () => this.toggle());
    document.addEventListener("keydown", (event) => this.key(event, moves));
  }

  key(event, moves) {
    if (event.altKey || event.ctrlKey || event.metaKey || still(event.target)) return;
    const keys = { ArrowLeft: "back", ArrowRight: "ahead", Home: "first", End: "last" };
    if (keys[event.key]) this.go(moves[keys[event.key]](), { by: "hand" });
    else if (event.key === " " && !event.target.closest("button, a")) this.toggle();
    else return;
    event.preventDefault();
  }

  show(steps, known) {
    const same = steps.length === this.names.length && steps.every((name, place) => name === this.names[place]);
    const atEnd = this.at >= this.names.length - 1;
    this.names = steps;
    this.slider.max = Math.max(0, steps.length - 1);
    find("tokens").replaceChildren(...steps.map((name, place) => make("li", {}, make("button", {
      type: "button", class: known[place] ? "token" : "token strange", "data-step": place,
      title: known[place] ? `Step ${place}` : `Step ${place}: not in the vocabulary`,
      onclick: () => this.go(place, { by: "hand" }),
    }, visible(name)))));
    this.go(same && !atEnd ? this.at : steps.length - 1, { by: "new" });
  }

  go(place, { by }) {
    if (by === "hand") this.stop();
    this.at = Math.max(0, Math.min(place, this.names.length - 1));
    this.slider.value = this.at;
    const told = this.names.length ? `step ${this.at} of ${this.names.length - 1}` : "";
    find("step-told").textContent = told;
    this.slider.setAttribute("aria-valuetext", `${told}, ${this.names[this.at] ?? ""}`);
    for (const token of find("tokens").querySelectorAll(".token")) {
      const here = Number(token.dataset.step) === this.at;
      token.classList.toggle("past", Number(token.dataset.step) < this.at);
      if (here) token.setAttribute("aria-current", "step"); else token.removeAttribute("aria-current");
      if (here && by !== "new") reveal(token);
    }
    this.changed(this.at, by);
  }

  toggle() { if (this.clock) this.stop(); else this.play(); }

  play() {
    if (this.at >= this.names.length - 1) this.go(0, { by: "clock" });
    this.clock = window.setInterval(() => {
      if (this.at >= this.names.length - 1) this.stop(); else this.go(this.at + 1, { by: "clock" });
    }, PACE);
    this.mark(true);
  }

  stop() {
    window.clearInterval(this.clock);
    this.clock = null;
    this.mark(false);
  }

  mark(playing) {
    find("play").setAttribute("aria-pressed", String(playing));
    find("play").setAttribute("aria-label", playing ? "Pause" : "Play");
  }
}

// Only the row of tokens is moved, never the page.
function reveal(token) {
  const row = find("tokens"), from = token.offsetLeft - row.offsetLeft;
  if (from < row.scrollLeft || from + token.offsetWidth > row.scrollLeft + row.clientWidth) {
    row.scrollLeft = from - row.clientWidth / 2;
  }
}
