// One network: what it predicts after each prefix, its automaton, and its inside.

import { digits, make, percent, table, visible } from "./elements.js";
import { Machine } from "./machine.js";
import { Strip, ruler } from "./strips.js";

const KINDS = { classifier: "classifier", "language model": "language model", tagger: "tagger" };
const NAMES = { cell: "candidate of the memory", candidate: "candidate of the state" };
const count = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;

export class Panel {
  constructor(run, about, chosen) {
    // Networks may begin with a token of their own or not: all count from the first token that was typed.
    Object.assign(this, { run, about, shift: 0, trace: null, strips: [] });
    this.chosen = (step) => chosen(step + this.shift);
    const facts = [KINDS[about.kind], about.cell, count(about.layers, "layer"), count(about.units, "unit"),
      about.bidirectional ? "both directions" : null, count(about.parameters, "weight")].filter(Boolean);
    this.trouble = make("p", { class: "trouble", role: "alert", hidden: true });
    this.prediction = make("div", { class: "prediction" });
    this.predictionTitle = make("h3", {}, "Prediction");
    this.inside = make("div", { class: "inside" });
    this.machine = about.machine ? new Machine(about.machine) : null;
    this.body = make("div", { class: "columns" },
      make("div", { class: "left" },
        make("section", {}, this.predictionTitle, this.prediction),
        make("section", {}, make("h3", {}, "Automaton"),
          this.machine ? this.machine.element : make("p", { class: "soft" }, about.why_no_machine))),
      make("section", { class: "right" }, make("h3", {}, "Inside, step by step"), this.inside));
    this.element = make("section", { class: "card panel", "aria-label": `Network ${about.name}` },
      make("header", {}, make("h2", {}, about.name), make("p", { class: "soft small" }, facts.join(" · "))),
      this.trouble, this.body);
  }

  refuse(error) {
    this.trace = null;
    this.trouble.textContent = error.message;
    this.trouble.hidden = false;
    this.body.hidden = true;
  }

  show(trace, at, ahead) {
    this.shift = ahead - (trace.steps.length - trace.tokens.length);
    this.trace = { ...trace, starts: this.about.start !== null };
    this.trouble.hidden = true;
    this.body.hidden = false;
    const open = this.inside.querySelector("details")?.open ?? false;
    this.strips = [];
    this.inside.replaceChildren(...trace.layers.map((layer, place) => this.layer(layer, place, open)));
    this.go(at);
  }

  layer(layer, place, open) {
    const trace = this.trace, steps = trace.steps, group = [];
    const add = (title, values, palette, names) => {
      const strip = new Strip({ title, values, palette, names, chosen: this.chosen });
      group.push(strip);
      return strip;
    };
    if (place === 0 && trace.expected && steps.length > 1) {
      // The first word was not read yet when it was expected.
      add("probability of the word that came", [[null], ...trace.expected.slice(0, -1).map((share) => [share])], "share", ["it"]);
    }
    if (place === 0 && trace.outcomes[0].length <= 6 && !trace.expected) {
      add(this.about.kind === "tagger" ? "tags" : "classes after each prefix", trace.outcomes.map((step) => step.map(([, share]) => share)),
        "share", trace.outcomes[0].map(([name]) => name));
    }
    if (layer.centroids) add("centroids", layer.centroids, "share", layer.centroids[0].map((_, unit) => `centroid ${unit}`));
    add("state h", layer.states, "signed");
    if (layer.cells) add("memory c", layer.cells, "signed");
    for (const [name, gate] of Object.entries(layer.gates)) {
      const signed = gate.some((column) => column.some((value) => value < 0 || value > 1));
      add(signed ? NAMES[name] ?? name : `${name} gate`, gate, signed ? "signed" : "share");
    }
    this.strips.push(...group);
    const values = make("details", { ontoggle: () => this.values(values, layer) }, make("summary", {}, "Values of this step"));
    values.open = open && place === 0;
    const element = make("div", { class: "layer" },
      trace.layers.length > 1 ? make("h4", {}, `Layer ${place + 1}${place === trace.layers.length - 1 ? ", the top" : ""}`) : null,
      make("div", { class: "scroll strips", tabindex: 0, role: "region", "aria-label": `Strips of layer ${place + 1}` },
        ruler(steps, this.chosen), ...group.map((strip) => strip.element)),
      layer.shown < layer.units ? make("p", { class: "soft small" }, `The first ${layer.shown} of ${layer.units} units.`) : null,
      values);
    element.style.setProperty("--steps", steps.length);
    element.refresh = () => this.values(values, layer);
    return element;
  }

  values(details, layer) {
    if (!details.open) return;
    const at = this.at, columns = { h: layer.states[at] };
    if (layer.cells) columns.c = layer.cells[at];
    for (const [name, gate] of Object.entries(layer.gates)) columns[name] = gate[at];
    const rows = columns.h.map((_, unit) => [String(unit), ...Object.values(columns).map((column) => digits(column[unit], 3))]);
    const parts = [table(`Values at step ${at}`, ["unit", ...Object.keys(columns)], rows)];
    if (layer.centroids) {
      parts.unshift(table(`Centroids at step ${at}`, ["centroid", "probability"],
        layer.centroids[at].map((share, place) => [String(place), percent(share)])));
    }
    details.replaceChildren(details.querySelector("summary"), ...parts);
  }

  go(at) {
    if (!this.trace) return;
    this.at = Math.max(0, Math.min(at - this.shift, this.trace.steps.length - 1));
    for (const strip of this.strips) strip.show(this.at);
    for (const layer of this.inside.children) layer.refresh();
    this.predict();
    if (this.machine && this.trace.machine) this.machine.show(this.trace, this.at);
  }

  predict() {
    const { outcomes, variation, steps, prefixes } = this.trace, at = this.at;
    const best = outcomes[at].reduce((one, other) => (other[1] > one[1] ? other : one));
    const read = this.about.kind === "tagger" ? `Tag of “${visible(steps[at])}”`
      : this.about.kind === "language model" ? `After “${visible(steps[at])}”` : `After ${count(at + (this.trace.starts ? 0 : 1), this.about.glue === "" ? "symbol" : "word")}`;
    this.predictionTitle.textContent = `${read}: ${best[0]}`;
    this.said = `${this.about.name}: ${read}: ${best[0]} ${percent(best[1])}`;
    this.prediction.replaceChildren(
      make("ul", { class: "bars" }, ...outcomes[at].map(([name, share], place) =>
        bar(name, share, variation ? [variation.low[at][place], variation.high[at][place]] : null, name === best[0]))),
      ...(variation ? [make("p", { class: "small varied" },
        `Under noise ${percent(variation.agreement[at])} of ${variation.draws} draws agree here; the state moves by ` +
        `${digits(variation.moved[at])}. At the end: ${variation.answers.map(([name, times]) => `${name} ×${times}`).join(", ")}.`)] : []),
      ...(prefixes ? [this.tags(prefixes)] : []));
  }

  tags(prefixes) {
    const { steps, answer } = this.trace, now = prefixes[this.at];
    const rows = steps.map((word, place) => [visible(word), answer[place], place <= this.at ? now[place] : "·"]);
    return table("Tags by the whole sentence and by its beginning", ["word", "whole sentence", "up to here"], rows);
  }

  repaint() { for (const strip of this.strips) strip.repaint(); }
}

function bar(name, share, range, best) {
  const inner = make("span", { class: "fill" });
  inner.style.setProperty("--share", share ?? 0);
  const parts = [inner];
  if (range) {
    const whisker = make("span", { class: "range", title: `from ${percent(range[0])} to ${percent(range[1])} under noise` });
    whisker.style.setProperty("--low", range[0] ?? 0);
    whisker.style.setProperty("--high", range[1] ?? 0);
    parts.push(whisker);
  }
  return make("li", { class: best ? "best" : null },
    make("span", { class: "name", title: name }, visible(name)), make("span", { class: "track", "aria-hidden": "true" }, ...parts),
    make("span", { class: "number" }, percent(share)));
}
