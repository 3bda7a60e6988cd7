// The page: one input, one or two networks, one step for all of them.

import { ask, Refused } from "./ask.js";
import { find, make } from "./elements.js";
import { Panel } from "./panel.js";
import { onTheme } from "./strips.js";
import { Tools } from "./tools.js";
import { Transport } from "./transport.js";

const PAUSE = 150; // milliseconds that a slider must rest before the networks are asked

class Page {
  constructor(about) {
    this.about = about;
    this.asking = null;
    this.touched = false; // whether the temperature is another than that of training
    this.panels = about.runs.map((run, place) => new Panel(place, run, (step) => this.transport.go(step, { by: "hand" })));
    this.transport = new Transport((at, by) => this.go(at, by));
    find("panels").replaceChildren(...this.panels.map((panel) => panel.element));
    find("panels").classList.toggle("two", about.runs.length > 1);
    this.tools = new Tools(about, { current: () => this.current(), take: (text) => this.take(text), live: say });
    this.describe();
    this.listen();
    onTheme(() => this.panels.forEach((panel) => panel.repaint()));
  }

  describe() {
    const [first] = this.about.runs;
    find("runs").textContent = this.about.runs.map((run) => run.name).join(" and ");
    document.title = `${find("runs").textContent} – statewise explorer`;
    find("text-label").textContent = first.symbols && first.glue === "" ? "A word" : "A sentence";
    const told = first.symbols ? `Symbols: ${first.symbols.join(" ")}` : `${first.vocabulary.toLocaleString("en")} known words`;
    const none = this.about.runs.filter((run) => run.why_no_examples).map((run) => `${run.name}: ${run.why_no_examples}`);
    find("hint").textContent = [`${told}; at most ${first.most_tokens} tokens.`, ...none].join(" ");
    const choices = [...new Set(this.about.runs.flatMap((run) => run.choices))];
    find("choices").append(...choices.map((text) => make("option", { value: text }, text)));
    find("choices").parentNode.hidden = choices.length === 0;
    this.trained = this.about.runs.map((run) => run.temperature).find((value) => value !== null) ?? null;
    find("temperature-control").hidden = this.trained === null;
    this.cool();
    find("text").value = choices.find((text) => text.length > 4) ?? "";
  }

  listen() {
    const later = () => { window.clearTimeout(this.clock); this.clock = window.setTimeout(() => this.read(), PAUSE); };
    find("asking").addEventListener("submit", (event) => { event.preventDefault(); this.read(); });
    find("text").addEventListener("input", later);
    find("choices").addEventListener("change", (event) => { if (event.target.value) this.take(event.target.value); });
    find("temperature").addEventListener("input", () => { this.touched = true; this.tell(); later(); });
    find("as-trained").addEventListener("click", () => { this.cool(); later(); });
    for (const id of ["noise", "mode", "draws", "seed", "shown"]) find(id).addEventListener("input", () => { this.tell(); later(); });
  }

  cool() {
    this.touched = false;
    if (this.trained !== null) find("temperature").value = Math.log10(this.trained);
    this.tell();
  }

  tell() {
    const { temperature, gamma, draws } = this.current();
    const shown = temperature ?? this.trained;
    find("temperature-told").textContent = shown === null ? "" : Number(shown.toPrecision(2)).toString();
    find("as-trained").disabled = !this.touched;
    find("noise-told").textContent = gamma.toFixed(2);
    const chosen = find("shown").value, options = [["0", "no noise"]];
    if (gamma > 0) for (let draw = 1; draw <= draws; draw += 1) options.push([String(draw), `draw ${draw}`]);
    find("shown").replaceChildren(...options.map(([value, told]) => make("option", { value }, told)));
    find("shown").value = options.some(([value]) => value === chosen) ? chosen : "0";
  }

  current() {
    const whole = (id, low, high) => Math.min(high, Math.max(low, Math.trunc(Number(find(id).value)) || 0));
    return {
      text: find("text").value,
      temperature: this.touched ? 10 ** Number(find("temperature").value) : null,
      gamma: Number(find("noise").value),
      mode: find("mode").value,
      draws: whole("draws", 1, 32),
      seed: whole("seed", 0, 2147483647),
    };
  }

  take(text) {
    find("text").value = text;
    find("choices").value = "";
    this.read();
    find("text").scrollIntoView({ block: "nearest" });
  }

  async read() {
    window.clearTimeout(this.clock);
    this.asking?.abort();
    const asking = this.asking = new AbortController();
    const fields = { ...this.current(), shown: Number(find("shown").value) };
    document.body.classList.add("busy");
    const answers = await Promise.allSettled(this.panels.map((panel) => ask("trace", { ...fields, run: panel.run }, { signal: asking.signal })));
    if (asking !== this.asking) return; // another question was asked meanwhile
    document.body.classList.remove("busy");
    const good = answers.filter((answer) => answer.status === "fulfilled").map((answer) => answer.value);
    const longest = good.reduce((one, other) => (!one || other.steps.length > one.steps.length ? other : one), null);
    const ahead = longest ? longest.steps.length - longest.tokens.length : 0;
    for (const [place, answer] of answers.entries()) {
      if (answer.status === "fulfilled") this.panels[place].show(answer.value, this.transport.at, ahead);
      else this.panels[place].refuse(answer.reason);
    }
    find("text").toggleAttribute("aria-invalid", good.length === 0);
    find("transport").hidden = longest === null;
    if (longest) {
      this.transport.show(longest.steps, longest.steps.map((_, step) => step < ahead || longest.tokens[step - ahead].known));
    } else {
      say(answers[0].reason.message);
    }
  }

  go(at, by) {
    for (const panel of this.panels) panel.go(at);
    if (by === "hand" || by === "new") {
      window.clearTimeout(this.saying);
      this.saying = window.setTimeout(() => say(this.panels.map((panel) => panel.trace && panel.said).filter(Boolean).join(". ")), 300);
    }
  }
}

function say(text) { find("live").textContent = text; }

async function begin() {
  try {
    const page = new Page(await ask("about"));
    await page.read();
    document.body.classList.add("ready");
  } catch (error) {
    const lost = error instanceof Refused && error.status === 401;
    find("trouble").textContent = lost
      ? "This page needs its key. Open the whole address that statewise explore has printed, with what follows the #."
      : `The explorer does not answer: ${error.message}`;
    find("trouble").hidden = false;
    document.body.classList.add("ready", "lost");
  }
}

begin();
