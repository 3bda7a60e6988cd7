// Questions beyond one input: edits that disturb, inputs that are near, inputs that bear noise badly.

import { ask } from "./ask.js";
import { digits, find, make, percent, table, visible } from "./elements.js";

const select = (label, options, changed) => {
  const choice = make("select", { onchange: changed }, ...options.map(([value, told]) => make("option", { value }, told)));
  return { choice, element: make("label", { class: "inline" }, label, " ", choice) };
};
const EDITS = { substitute: "replace", delete: "leave out", insert: "insert" };

export class Tools {
  // current(): the text and the setting; take(text): reads another text; live(text): says it to those who do not see.
  constructor(about, { current, take, live }) {
    Object.assign(this, { about, current, take, live });
    this.names = ["disturb", "nearest", "fragile"];
    this.build("disturb", "Try every change of one token, as far as the time of a request goes.", "Search",
      ["ranked by", [["prediction", "change of the prediction"], ["state", "movement of the state"]]], this.disturb);
    this.build("nearest", "The inputs of the run’s own data that leave it in the most similar state, as it was trained.", "Look up",
      ["by", [["cosine", "angle"], ["euclidean", "distance"]]], this.nearest);
    this.build("fragile", "The inputs of the run’s own data whose right answer loses most probability under the noise set above.", "Measure",
      null, this.fragile);
    for (const name of this.names) find(`tab-${name}`).addEventListener("click", () => this.open(name));
    find("tab-disturb").parentNode.addEventListener("keydown", (event) => this.key(event));
  }

  build(name, told, verb, options, answer) {
    const runs = this.about.runs.length > 1
      ? select("of", this.about.runs.map((run, place) => [place, run.name]), null) : null;
    const order = options ? select(options[0], options[1], null) : null;
    const result = make("div", { class: "result", "aria-live": "polite" });
    const button = make("button", { type: "button", class: "main" }, verb);
    button.addEventListener("click", async () => {
      button.disabled = true;
      result.replaceChildren(make("p", { class: "soft" }, "…"));
      try {
        result.replaceChildren(...await answer.call(this, Number(runs?.choice.value ?? 0), order?.choice.value));
      } catch (error) {
        result.replaceChildren(make("p", { class: "trouble" }, error.message));
      } finally {
        button.disabled = false;
      }
    });
    find(`tool-${name}`).append(make("p", { class: "soft" }, told),
      make("div", { class: "line" }, button, runs?.element, order?.element), result);
  }

  key(event) {
    const at = this.names.findIndex((name) => event.target.id === `tab-${name}`);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: this.names.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const name = this.names[(to + this.names.length) % this.names.length];
    this.open(name);
    find(`tab-${name}`).focus();
  }

  open(chosen) {
    for (const name of this.names) {
      const tab = find(`tab-${name}`);
      tab.setAttribute("aria-selected", String(name === chosen));
      tab.tabIndex = name === chosen ? 0 : -1;
      find(`tool-${name}`).hidden = name !== chosen;
    }
  }

  reading(text) {
    return make("button", { type: "button", class: "quiet", title: "Read this input", onclick: () => this.take(text) },
      text === "" ? "(empty)" : shorten(visible(text).replaceAll("␣", " ")));
  }

  async disturb(run, by) {
    const { text, temperature } = this.current();
    const told = await ask("disturb", { run, text, temperature, by });
    if (!told.edits.length) return [make("p", {}, "There is nothing to change.")];
    const all = told.tried === told.possible ? "all" : `${told.tried.toLocaleString("en")} of ${told.possible.toLocaleString("en")}`;
    const changing = told.changing === 0 ? "none of them changes" : told.changing === 1 ? "one of them changes" : `${told.changing.toLocaleString("en")} of them change`;
    const head = `Tried ${all} ${all === "all" ? `${told.tried.toLocaleString("en")} ` : ""}single edits; ${changing} the answer “${shorten(told.answer.join(" "))}”.`;
    this.live(head);
    const rows = told.edits.map((edit) => [edited(edit), this.reading(edit.text),
      make("span", { class: edit.changed ? "changed" : null }, shorten(edit.answer.join(" "))), digits(edit.shift), digits(edit.moved)]);
    return [make("p", {}, head), table("Edits that disturb most", ["edit", "input", "answer", "prediction moves", "state moves"], rows)];
  }

  async nearest(run, by) {
    const told = await ask("nearest", { run, text: this.current().text, by });
    const head = `The nearest of ${told.of.toLocaleString("en")} inputs of the run’s data.`;
    this.live(head);
    const labelled = told.examples.some((example) => example.right.length);
    const rows = told.examples.map((example) => [this.reading(example.text), example.part,
      ...(labelled ? [shorten(example.right.join(" "))] : []), answered(example), digits(example.distance, 4)]);
    return [make("p", {}, head), table("Nearest inputs", ["input", "part", ...(labelled ? ["right"] : []), labelled ? "predicted" : "expected next", by === "cosine" ? "1 − cosine" : "distance"], rows)];
  }

  async fragile(run) {
    const { temperature, gamma, mode, draws, seed } = this.current();
    if (gamma === 0) return [make("p", { class: "trouble" }, "Without noise nothing suffers: move the slider of the noise first.")];
    const told = await ask("fragile", { run, temperature, gamma, mode, draws, seed });
    const head = `Read ${told.asked.toLocaleString("en")} of ${told.of.toLocaleString("en")} inputs, each with ${told.draws} draws of noise ${gamma}.`;
    this.live(head);
    const rows = told.examples.map((example) => [this.reading(example.text), example.part, shorten(example.right.join(" ")) || "–",
      percent(example.before), digits(example.loss), percent(example.flips)]);
    return [make("p", {}, head), table("Inputs that bear noise worst",
      ["input", "part", "right", "probability without noise", "lost on average", "draws that answer otherwise"], rows)];
  }
}

const shorten = (text, most = 60) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function edited({ kind, at, token }) {
  return `${EDITS[kind]} ${kind === "delete" ? `token ${at + 1}` : kind === "insert" ? `“${visible(token)}” as token ${at + 1}` : `token ${at + 1} by “${visible(token)}”`}`;
}

function answered(example) {
  const wrong = example.right.length && example.right.join(" ") !== example.answer.join(" ");
  return make("span", { class: wrong ? "changed" : null }, shorten(example.answer.join(" ")));
}
