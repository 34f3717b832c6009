"""Which input a box is halved along: a rule is a file here, named by `strategy.Inputs.rule`.

It has `RULE`, a function of the query, the boxes, the bounds of their hidden neurons, the backward
pass of their rows, the weights [boxes, rows] of these rows and the numbers of the strategy. It
returns [boxes, inputs]: of each box, the input with the largest value is halved. A rule decides how
soon a search ends, and never what it proves.
"""
