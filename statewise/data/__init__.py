"""What networks learn from: text, formal languages, synthetic tasks, pictures read pixel by pixel."""

from statewise.data.bracket_words import parentheses, parentheses_language, parentheses_sets
from statewise.data.columns import Columns, bptt_lengths
from statewise.data.copying import Copying, copying, copying_baseline
from statewise.data.corpus import Corpus, read_corpus
from statewise.data.examples import Sequences
from statewise.data.generate import sample_words
from statewise.data.grammars import tomita, tomita_sets
from statewise.data.idx import image_sets, read_idx, read_images
from statewise.data.images import Images
from statewise.data.labelled import LabelledText, imdb_sets, read_labelled, split_words
from statewise.data.languages import Language
from statewise.data.mirror_words import palindrome_language, palindrome_sets, palindromes
from statewise.data.random_machines import random_machine
from statewise.data.rows import LabelledFile
from statewise.data.sample import sample_corpus
from statewise.data.sets import find_data_set
from statewise.data.stream import TokenStream
from statewise.data.task import TaskSets
from statewise.data.text import Text
from statewise.data.vocabulary import Vocabulary
from statewise.data.weiss import weiss_parentheses

__all__ = [
    "Columns",
    "Copying",
    "Corpus",
    "Images",
    "LabelledFile",
    "LabelledText",
    "Language",
    "Sequences",
    "TaskSets",
    "Text",
    "TokenStream",
    "Vocabulary",
    "bptt_lengths",
    "copying",
    "copying_baseline",
    "find_data_set",
    "image_sets",
    "imdb_sets",
    "palindrome_language",
    "palindrome_sets",
    "palindromes",
    "parentheses",
    "parentheses_language",
    "parentheses_sets",
    "random_machine",
    "read_corpus",
    "read_idx",
    "read_images",
    "read_labelled",
    "sample_corpus",
    "sample_words",
    "split_words",
    "tomita",
    "tomita_sets",
    "weiss_parentheses",
]
