"""Decoding and losses over charts of scores, without any network: CKY, joint trees, and what the machine offers for it."""
