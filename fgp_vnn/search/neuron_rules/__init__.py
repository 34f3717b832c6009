"""Which neuron a bundle is split at: a rule is a file here, named by `strategy.Neurons.rule`.

It has `RULE`, a function of the setting of the search, its bundles with their bounds, and the
numbers `at` of those to split. It returns scores [at, neurons]; of the neurons with the highest
ones, among those that are open, the search takes the one whose halves start with the best bounds.
A rule decides how soon a search ends, and never what it proves.
"""
