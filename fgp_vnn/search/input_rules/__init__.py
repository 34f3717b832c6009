"""Rules for the input along which to halve a box; `strategy.Inputs.rule` names one of the files.

Each file defines `RULE`, a function of the query, the boxes, the bounds of their hidden neurons,
the backward pass of their rows, the weights [boxes, rows] of these rows and the numbers of the
strategy. It returns scores [boxes, inputs]: each box is halved along the input with the largest
score. A rule affects how soon a search ends, never what it proves.
"""
