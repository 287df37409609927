"""Training a parser: loss, loop, checkpoints, parallel work, and an estimate beforehand."""
