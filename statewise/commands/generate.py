"""``statewise generate``: let a trained model go on."""

from __future__ import annotations

from typing import Any

import torch
from jsonargparse import ArgumentParser
from rich.console import Console

from statewise.commands.shared import DEVICE, JSON, command_parser, find_device
from statewise.commands.texts import load_run, made_lower
from statewise.data import Vocabulary
from statewise.models import generate
from statewise.train.telling import say


def parser() -> ArgumentParser:
    """The options of the command."""
    made = command_parser(
        "Let a trained language model go on from a prompt, or begin a sentence.",
        'statewise generate runs/book --prompt "the old" --length 30',
        "statewise generate runs/book --temperature 0.7 --top 50 --seed 1",
    )
    add = made.add_argument
    add("run", type=str, help="the folder of a run")
    add("--prompt", type=str, default="", help="what the text begins with; words that the model does not know are told")
    add("--length", type=int, default=50, help="how many words to add; ends of sentences count")
    add("--temperature", type=float, default=1.0, help="1 for the model's own distribution, 0 for the likeliest word")
    add("--top", type=int, help="draw only among so many likeliest words")
    add("--seed", type=int, default=0, help="of the draws")
    add("--allow-unknown", action="store_true", help="let <unk> be drawn")
    add("--device", **DEVICE)
    add("--json", **JSON)
    return made


def run(arguments: Any, console: Console) -> dict[str, Any]:
    """Generate, and print.

    Args:
        arguments: as the parser gives them.
        console: where to print.
    """
    device = find_device(arguments.device)
    model, vocabulary, told = load_run(arguments.run, device)
    words = (arguments.prompt.lower() if made_lower(told) else arguments.prompt).split()
    missing = [word for word in words if word not in vocabulary]
    if missing:
        say(console, f"Unknown words in the prompt: {', '.join(dict.fromkeys(missing))}")
    prompt = torch.tensor([vocabulary.end_id, *vocabulary.encode(words)], device=device).unsqueeze(1)
    drawn = generate(
        model,
        prompt,
        length=arguments.length,
        temperature=arguments.temperature,
        top=arguments.top,
        forbidden=() if arguments.allow_unknown else (vocabulary.unknown_id,),
        generator=torch.Generator().manual_seed(arguments.seed),
    )
    text = as_text([*words, *vocabulary.decode(drawn[:, 0])], vocabulary)
    say(console, text)
    return {"run": arguments.run, "prompt": arguments.prompt, "unknown": missing, "text": text}


def as_text(words: list[str], vocabulary: Vocabulary) -> str:
    r"""Words as lines, one a sentence.

    >>> as_text(["a", "cat", "<eos>", "a", "fox"], Vocabulary.build(["a cat", "a fox"]))
    'a cat\na fox'
    """
    return "\n".join(part.strip() for part in " ".join(words).split(vocabulary.end)).strip()
