"""``python -m statewise`` is the command line."""

from __future__ import annotations

from statewise.cli import main

if __name__ == "__main__":
    main()
