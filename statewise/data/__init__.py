"""What networks learn from: text, tagged sentences, languages, synthetic tasks, pictures by the pixel, series."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.data.bracket_words import parentheses, parentheses_language, parentheses_sets
    from statewise.data.columns import Columns, bptt_lengths
    from statewise.data.conll2003 import conll2003_sets, glove_vectors
    from statewise.data.context_flair import context_vectors_by_flair
    from statewise.data.context_vectors import ContextVectors, read_context_vectors, write_context_vectors
    from statewise.data.copying import Copying, copying, copying_baseline
    from statewise.data.copying_memory import CopyingMemory
    from statewise.data.corpus import Corpus, read_corpus
    from statewise.data.examples import Sequences
    from statewise.data.generate import sample_words
    from statewise.data.grammars import tomita, tomita_sets
    from statewise.data.hidden_markov import BestTagging, HiddenMarkovFeatures, hidden_markov_features
    from statewise.data.hidden_markov_sentences import (
        HiddenMarkovSentences,
        HiddenMarkovTagger,
        hidden_markov_sentences,
    )
    from statewise.data.idx import image_sets, read_idx, read_images
    from statewise.data.images import Images
    from statewise.data.labelled import LabelledText, imdb_sets, read_labelled
    from statewise.data.languages import Language
    from statewise.data.memory_task import MemoryTask, SequenceTask
    from statewise.data.memory_tasks import memory_task
    from statewise.data.mirror_words import palindrome_language, palindrome_sets, palindromes
    from statewise.data.permuted_pixels import PermutedPixels, PixelSet, permuted_pixels, published_order
    from statewise.data.random_machines import random_machine
    from statewise.data.rows import LabelledFile
    from statewise.data.sample import sample_corpus
    from statewise.data.series import Series
    from statewise.data.series_parts import Scale
    from statewise.data.series_read import read_series
    from statewise.data.series_sample import sample_bursts, sample_seasons
    from statewise.data.series_write import write_series
    from statewise.data.sets import find_data_set
    from statewise.data.similarity import StartEndSimilarity
    from statewise.data.span_comparison import SpanComparison, compare_span_runs, compare_spans
    from statewise.data.span_scores import SpanCounts, SpanScores, score_spans
    from statewise.data.spans import Span, spans
    from statewise.data.stream import TokenStream
    from statewise.data.tag_schemes import convert_tags, detect_scheme
    from statewise.data.tagged import TaggedSentences
    from statewise.data.tagged_read import read_sentences, read_tagged
    from statewise.data.task import TaskSets
    from statewise.data.text import Text
    from statewise.data.vocabulary import Vocabulary
    from statewise.data.weiss import weiss_parentheses
    from statewise.data.word_vectors import WordVectors, read_vectors
    from statewise.models.cutting import split_words

__all__ = [
    "BestTagging",
    "Columns",
    "ContextVectors",
    "Copying",
    "CopyingMemory",
    "Corpus",
    "HiddenMarkovFeatures",
    "HiddenMarkovSentences",
    "HiddenMarkovTagger",
    "Images",
    "LabelledFile",
    "LabelledText",
    "Language",
    "MemoryTask",
    "PermutedPixels",
    "PixelSet",
    "Scale",
    "SequenceTask",
    "Sequences",
    "Series",
    "Span",
    "SpanComparison",
    "SpanCounts",
    "SpanScores",
    "StartEndSimilarity",
    "TaggedSentences",
    "TaskSets",
    "Text",
    "TokenStream",
    "Vocabulary",
    "WordVectors",
    "bptt_lengths",
    "compare_span_runs",
    "compare_spans",
    "conll2003_sets",
    "context_vectors_by_flair",
    "convert_tags",
    "copying",
    "copying_baseline",
    "detect_scheme",
    "find_data_set",
    "glove_vectors",
    "hidden_markov_features",
    "hidden_markov_sentences",
    "image_sets",
    "imdb_sets",
    "memory_task",
    "palindrome_language",
    "palindrome_sets",
    "palindromes",
    "parentheses",
    "parentheses_language",
    "parentheses_sets",
    "permuted_pixels",
    "published_order",
    "random_machine",
    "read_context_vectors",
    "read_corpus",
    "read_idx",
    "read_images",
    "read_labelled",
    "read_sentences",
    "read_series",
    "read_tagged",
    "read_vectors",
    "sample_bursts",
    "sample_corpus",
    "sample_seasons",
    "sample_words",
    "score_spans",
    "spans",
    "split_words",
    "tomita",
    "tomita_sets",
    "weiss_parentheses",
    "write_context_vectors",
    "write_series",
]

lazy_imports(__name__)
