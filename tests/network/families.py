"""Four families of tokenizers, tiny and trained here on made-up text; nothing is downloaded."""

from functools import cache

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

TEXT = (
    "the person saw a small house near the old river when it had rained and nobody was there",
    "Select the person driving, don't wait! 3.14 of 27 (twenty-seven) naïve cafés",
    "我们 住在 同一 条 巷子 小林 把 窗户 擦 干净 了 鄰居 說 什麼",
    "שלום עולם مرحبا بالعالم привет мир γειά σου",
)
FAMILIES = ("wordpiece", "byte-bpe", "unigram-left", "sentencepiece-bpe")


@cache
def tokenizer(family: str) -> PreTrainedTokenizerFast:
    return {
        "wordpiece": _wordpiece, "byte-bpe": _byte_bpe, "unigram-left": _xlnet, "sentencepiece-bpe": _sentencepiece_bpe,
    }[family]()  # fmt: skip


def _wordpiece() -> PreTrainedTokenizerFast:
    """BERT: [CLS] ... [SEP]; Chinese characters are words of their own."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    made.normalizer = normalizers.BertNormalizer(lowercase=False)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return _finish(made, trainers.WordPieceTrainer(vocab_size=300, special_tokens=special), special, "[CLS] $A [SEP]")


def _byte_bpe() -> PreTrainedTokenizerFast:
    """RoBERTa, GPT-2: bytes; most words are known with the space before them only."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    return _finish(made, trainer, special, "<s> $A </s>")


def _xlnet() -> PreTrainedTokenizerFast:
    """XLNet: unigrams, padded on the left, ... <sep> <cls>."""
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents()])
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<pad>", "<unk>", "<cls>", "<sep>", "<mask>"]
    trainer = trainers.UnigramTrainer(vocab_size=250, special_tokens=special, unk_token="<unk>")
    return _finish(made, trainer, special, "$A <sep> <cls>", padding_side="left")


def _sentencepiece_bpe() -> PreTrainedTokenizerFast:
    """CamemBERT, XLM-R in form: SentencePiece BPE; its normaliser drops zero-width characters."""
    made = Tokenizer(models.BPE(unk_token="<unk>"))
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace("\u200b", "")])
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
    return _finish(made, trainers.BpeTrainer(vocab_size=350, special_tokens=special), special, "<s> $A </s>")


def _finish(made: Tokenizer, trainer, special: list[str], around: str, **options) -> PreTrainedTokenizerFast:
    trainer.show_progress = False
    made.train_from_iterator(TEXT * 3, trainer)
    marks = [(name, made.token_to_id(name)) for name in special if name in around.split()]
    made.post_processor = processors.TemplateProcessing(single=around, special_tokens=marks)
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special))
    return PreTrainedTokenizerFast(tokenizer_object=made, **names, **options)
