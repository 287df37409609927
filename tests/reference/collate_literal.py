"""Sub-words of sentences word by word and as lists: the twin of `lalkit.network.alignment.SubWords`, for one row a sentence."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lalkit.network.alignment import after_space, special_tokens
from lalkit.treebank.tree import Sentence


def collate(tokenizer, sentences: Sequence[Sentence]) -> tuple[Tensor, ...]:
    (before, after), padding = special_tokens(tokenizer), tokenizer.pad_token_id or 0
    rows, places = [], []
    for b, sentence in enumerate(sentences):
        words = [after_space(word, tokenizer) for word in sentence.words]
        row, spots = list(before), []
        for ids in tokenizer(words, add_special_tokens=False)["input_ids"]:
            spots.append((b, len(row), len(row) + max(0, len(ids) - 1)))
            row += ids or [tokenizer.unk_token_id]
        rows.append(row + after)
        stop = len(rows[-1]) - 1
        places.append([(b, 0, 0) if before else spots[0], *spots, (b, stop, stop)])
    width, count = max(map(len, rows)), max(map(len, places))
    padded = [[*row, *[padding] * (width - len(row))] for row in rows]
    mask = [[column < len(row) for column in range(width)] for row in rows]
    return tuple(map(torch.tensor, (padded, mask, [[*one, *[(0, 0, 0)] * (count - len(one))] for one in places])))
