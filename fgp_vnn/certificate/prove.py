"""Turns the recorded proof steps of searches into a certificate that the checker accepts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fgp_vnn.base.errors import InputError
from fgp_vnn.certificate.checker.check import Checked, check, digest, understood
from fgp_vnn.certificate.checker.proof import ARRAYS, Certificate, ProofStep, read_certificate
from fgp_vnn.certificate.repair import MARGIN, repair_boxes
from fgp_vnn.certificate.write import write_certificate
from fgp_vnn.property.model import Property


class NoCertificateError(Exception):
    """Raised if no certificate can be made; the message says why."""


def prove(
    steps: Sequence[ProofStep],
    network: bytes,
    prop: bytes,
    parsed: Property,
    watch: Callable[[], None],
) -> tuple[bytes, Checked]:
    """The bytes of a certificate made of these steps, for the network and property with these file
    contents, and the checker's result. `watch` is called regularly and may raise to stop."""
    try:
        watch()
        read = understood(network)
        names = digest(network), digest(prop)

        def judged(proposed: Sequence[ProofStep]) -> tuple[bytes, Checked]:
            data = write_certificate(Certificate(*names, tuple(proposed)))
            return data, check(read_certificate(data), read, parsed, watch)

        if not any(step.kind == "boxes" for step in steps):
            return judged(steps)
        try:
            proved = judged(steps)
            if proved[1].margin > MARGIN:
                return proved  # the usual case: one check is enough
        except InputError:
            pass  # leaves that the checker cannot close are split next; other errors occur again
        return judged(
            [
                repair_boxes(read, parsed.cases[step.case], typed(step), watch)
                if step.kind == "boxes"
                else step
                for step in steps
            ]
        )
    except (InputError, LookupError, OverflowError) as error:
        raise NoCertificateError(str(error)) from None


def typed(step: ProofStep) -> ProofStep:
    """The step with its arrays converted to the types of the file format."""
    kinds = ARRAYS[step.kind]
    arrays = {name: step.arrays[name].astype(dtype) for name, (dtype, _) in kinds.items()}
    return replace(step, arrays=arrays)
