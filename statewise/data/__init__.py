"""Text for language models: read, numbered, kept in files, and cut into segments."""

from statewise.data.columns import Columns, bptt_lengths
from statewise.data.corpus import Corpus, read_corpus
from statewise.data.sample import sample_corpus
from statewise.data.sets import find_data_set
from statewise.data.stream import TokenStream
from statewise.data.text import Text
from statewise.data.vocabulary import Vocabulary

__all__ = [
    "Columns",
    "Corpus",
    "Text",
    "TokenStream",
    "Vocabulary",
    "bptt_lengths",
    "find_data_set",
    "read_corpus",
    "sample_corpus",
]
