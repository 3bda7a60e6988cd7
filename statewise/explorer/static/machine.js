// The automaton of a network, as the server has drawn it, with the places of machine and network in it.

import { draw, make } from "./elements.js";

export class Machine {
  constructor(about) {
    this.about = about;
    const parsed = new DOMParser().parseFromString(about.svg, "image/svg+xml").documentElement;
    this.svg = document.importNode(parsed, true);
    this.svg.removeAttribute("width");
    this.svg.removeAttribute("height");
    this.svg.style.setProperty("--wide", `${Math.min(760, parsed.viewBox?.baseVal?.width || 400)}px`);
    const circles = [...this.svg.querySelectorAll("circle.sw-state")].slice(0, about.drawn.length);
    this.places = new Map(about.drawn.map((state, place) => [state, this.place(circles[place])]));
    const lines = [...this.svg.querySelectorAll("path.sw-line")];
    this.arrows = new Map(about.arrows.map(([from, to], place) => [`${from}>${to}`, lines[place]?.parentNode]));
    this.told = make("p", { class: "told-machine" });
    this.element = make("div", { class: "machine" },
      make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": about.description }, this.svg), this.told,
      make("p", { class: "soft small" }, about.told));
  }

  place(circle) {
    const at = { cx: circle.getAttribute("cx"), cy: circle.getAttribute("cy") }, r = Number(circle.getAttribute("r"));
    const cloud = draw("circle", { class: "cloud", ...at, r: r + 7 });
    const ring = draw("circle", { class: "by-network", ...at, r: r + 5 });
    circle.before(cloud);
    circle.after(ring);
    return { circle, cloud, ring };
  }

  show(trace, at) {
    const here = trace.machine.machine[at], network = trace.machine.network[at];
    const shares = new Map(trace.variation?.places?.[at] ?? []);
    for (const [state, { circle, cloud, ring }] of this.places) {
      circle.classList.toggle("is-here", state === here);
      ring.classList.toggle("is-there", state === network);
      cloud.style.setProperty("opacity", shares.get(state) ?? 0);
    }
    const taken = at > 0 || !trace.starts ? `${at > 0 ? trace.machine.machine[at - 1] : -1}>${here}` : `-1>${here}`;
    for (const [ends, arrow] of this.arrows) arrow?.classList.toggle("is-taken", ends === taken);
    const name = (state) => `${this.about.names[state]} (${this.about.classes[state]})`;
    const away = shares.get(null) ?? 0;
    this.told.textContent = `The machine is in ${name(here)}; the network is nearest to ` +
      `${network === null ? "a centroid that no word leads to" : name(network)}.` +
      (shares.size ? ` Under noise: ${[...shares].filter(([state]) => state !== null)
        .map(([state, share]) => `${this.about.names[state]} in ${Math.round(100 * share)} %`).join(", ")}` +
        `${away ? `, none of these in ${Math.round(100 * away)} %` : ""} of the draws.` : "");
    this.told.classList.toggle("parted", here !== network);
  }
}
