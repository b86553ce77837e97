"""The statistics of documents that are all at hand, for the tests of what builds them."""

from sightline.corpus_statistics import StatisticsCounter


def corpus_statistics(documents):
    counter = StatisticsCounter()
    for document in documents:
        counter.add(document)
    return counter.statistics()
