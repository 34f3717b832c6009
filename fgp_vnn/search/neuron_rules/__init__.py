"""Rules for the neuron at which to split a bundle; `strategy.Neurons.rule` names one of the files.

Each file defines `RULE`, a function of the context of the search, its bundles with their bounds,
and the numbers `at` of the bundles to split. It returns scores [at, neurons]. Among the open
neurons with the highest scores, the search takes the one whose children start with the best bounds.
A rule affects how soon a search ends, never what it proves.
"""
